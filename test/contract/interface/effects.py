"""Where a test observes what each parameter changes: parameter -> (how, the test).

A test that only sees a value stored, shown or refused proves no effect. ``*`` stands for all
parameters of a kind that have a row in the table of that test file.
"""

from __future__ import annotations

KVM = "test/unit/hypervisor/test_kvm_params.py::test_parameter_has_its_effect"
XEN = "test/unit/hypervisor/test_xen_config.py::test_parameter_has_its_effect"
LXC = "test/unit/hypervisor/test_lxc_config.py::"
LXC_GUESTS = "test/contract/hypervisor/test_lxc_guests.py::"
CLUSTER = "test/cluster/"
DRBD = "test/unit/storage/test_drbd_params.py::"
LIMITS = "test/unit/model/test_model_params.py::test_each_limit_is_kept"
NETWORK_STORAGE = "test/unit/storage/test_network_devices.py::"

EFFECTS: dict[str, tuple[str, str]] = {
    "hypervisor kvm *": ("the command line of QEMU", KVM),
    "hypervisor xen-pvm *": ("the configuration of the domain", XEN),
    "hypervisor xen-hvm *": ("the configuration of the domain", XEN),
    "hypervisor xen-pvm migration_port": (
        "where the target listens",
        "test/contract/hypervisor/test_xen_moves.py::move",
    ),
    "hypervisor xen-hvm migration_port": (
        "where the target listens",
        "test/contract/hypervisor/test_xen_moves.py::move",
    ),
    "hypervisor chroot init_script": (
        "the script that begins the guest",
        "test/contract/hypervisor/test_chroot_guests.py::test_another_script",
    ),
    "hypervisor lxc cpu_mask": ("processors of the group", f"{LXC}test_whole_configuration"),
    "hypervisor lxc devices": ("devices that are allowed", f"{LXC}test_further_disks_are_devices"),
    "hypervisor lxc drop_capabilities": (
        "what the guest may do",
        f"{LXC_GUESTS}test_capabilities_of_the_parameter",
    ),
    "hypervisor lxc extra_cgroups": (
        "a start without the controller is refused",
        f"{LXC_GUESTS}test_parameters_are_checked",
    ),
    "hypervisor lxc extra_config": (
        "lines of the configuration",
        f"{LXC}test_added_lines_come_last_and_values_may_have_commas",
    ),
    "hypervisor lxc num_ttys": (
        "terminals of the guest",
        f"{LXC_GUESTS}test_name_terminals_and_added_lines",
    ),
    "hypervisor lxc startup_timeout": (
        "a slow start is ended",
        f"{LXC_GUESTS}test_start_that_takes_too_long_is_ended",
    ),
    "backend maxmem": (
        "memory of the guest",
        f"{CLUSTER}test_cluster_disks.py::test_memory_now",
    ),
    "backend minmem": (
        "memory that a guest gives back",
        f"{CLUSTER}test_cluster_moves.py::test_the_guest_gives_memory_back_when_it_must_fit",
    ),
    "backend vcpus": (
        "processors of the guest",
        f"{CLUSTER}test_cluster_disks.py::test_processors_now",
    ),
    "backend auto_balance": (
        "whether memory for a failover is kept",
        "test/unit/ops/test_op_verify.py::test_the_secondary_node_has_the_memory_for_a_failover",
    ),
    "backend spindle_use": ("what the policy counts", LIMITS),
    "node exclusive_storage": (
        "a volume gets disks of its own",
        "test/unit/storage/test_lvm_device.py::test_exclusive_storage_takes_whole_disks",
    ),
    "node oob_program": (
        "the program that is run",
        f"{CLUSTER}test_cluster_node_roles.py::test_parameters",
    ),
    "node ssh_port": (
        "the port of the console",
        "test/unit/cli/test_cli_instance_console.py::test_the_ssh_port_of_the_node_is_used",
    ),
    "nic mode": (
        "how a NIC is attached",
        "test/unit/hypervisor/test_xen_config.py::test_network_cards",
    ),
    "nic link": (
        "what a NIC is attached to",
        "test/unit/hypervisor/test_xen_config.py::test_network_cards",
    ),
    "nic vlan": (
        "the VLANs of a NIC",
        "test/unit/hypervisor/test_xen_config.py::test_network_cards",
    ),
    "disk plain stripes": (
        "arguments of lvcreate",
        "test/unit/storage/test_lvm_device.py::test_stripes_come_from_the_parameters",
    ),
    "policy minmax": ("instances are refused", LIMITS),
    "spec cpu-count": ("instances are refused", LIMITS),
    "spec disk-count": ("instances are refused", LIMITS),
    "spec disk-size": ("instances are refused", LIMITS),
    "spec memory-size": ("instances are refused", LIMITS),
    "spec nic-count": ("instances are refused", LIMITS),
    "spec spindle-use": ("instances are refused", LIMITS),
    "cluster uid_pool": (
        "users of guests",
        "test/unit/hypervisor/test_kvm_uids.py::test_each_start_gets_a_user_of_its_own",
    ),
    "cluster hidden_os": (
        "lists leave it out",
        "test/unit/query/test_query_kinds.py::test_os_definitions",
    ),
    "cluster reserved_lvs": (
        "verify is silent about volumes",
        "test/unit/ops/test_op_verify_volumes.py::test_volumes_that_are_not_known",
    ),
    "cluster os_hvp": (
        "parameters of instances with the OS",
        "test/unit/model/test_model_config.py"
        "::test_hypervisor_parameters_come_from_cluster_os_variant_and_instance",
    ),
    "cluster osparams": (
        "parameters of instances with the OS",
        "test/unit/model/test_model_config.py::test_os_parameters_come_from_os_variant_and_instance",
    ),
    "cluster enabled_disk_templates": (
        "instances of others are refused",
        f"{CLUSTER}test_cluster_modify.py::test_what_it_uses_stays",
    ),
    "cluster enabled_hypervisors": (
        "nodes are asked; instances of others are refused",
        f"{CLUSTER}test_cluster_modify.py::test_nodes_are_asked_before_a_hypervisor_is_enabled",
    ),
    "cluster file_storage_dir": (
        "where disks are",
        "test/unit/ops/test_op_disk_layout.py::test_files_lie_below_the_directory_of_the_cluster",
    ),
    "cluster drbd_helper": (
        "nodes with another one are refused",
        f"{CLUSTER}test_cluster_drbd.py::test_helper_and_parameters_are_checked",
    ),
    "cluster default_iallocator": (
        "who chooses the node",
        f"{CLUSTER}test_cluster_allocators.py::test_a_new_instance_goes_where_most_is_free",
    ),
    "cluster master_netdev": (
        "the interface that gets the address",
        f"{CLUSTER}test_cluster_modify.py::test_up_and_down",
    ),
    "cluster master_netmask": (
        "the netmask of the address",
        f"{CLUSTER}test_cluster_modify.py::test_up_and_down",
    ),
    "cluster use_external_mip_script": (
        "the script that is run",
        f"{CLUSTER}test_cluster_modify.py::test_a_script_of_ones_own",
    ),
    "cluster instance_communication_network": (
        "the NIC and the network that are made",
        f"{CLUSTER}test_cluster_networks.py::test_the_network_between_guests_and_nodes",
    ),
    "cluster mac_prefix": (
        "addresses of new NICs",
        "test/unit/ops/test_op_nic_plans.py"
        "::test_a_mac_address_has_the_prefix_of_the_network_or_cluster",
    ),
    "cluster nicparams": (
        "how a NIC is attached",
        "test/unit/ops/test_op_nics.py::test_a_card_follows_the_default_of_the_cluster",
    ),
}
