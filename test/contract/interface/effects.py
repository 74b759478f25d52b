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

OPS = "test/unit/ops/test_op_parameter_effects.py::"
INSIDE = "test/unit/ops/test_op_allocator_inside.py::"
PLACEMENT = "test/unit/placement/test_parameter_effects.py::"

#: A third part is the word by which the test knows the parameter, if it is another one.
EFFECTS: dict[str, tuple[str, str] | tuple[str, str, str]] = {
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
        "ssh_ports",
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
    "policy minmax": ("instances are refused", f"{OPS}test_ipolicy_of_cluster_and_group"),
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
    "cluster hv_state": (
        "places that are chosen",
        f"{INSIDE}test_what_is_set_aside_on_a_node_is_not_chosen",
    ),
    "cluster disk_state": (
        "room that is left",
        f"{INSIDE}test_what_is_set_aside_of_a_volume_group_is_not_free",
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
        "drbd-usermode-helper",
    ),
    "cluster maintain_node_health": (
        "guests and devices of an offline node end",
        f"{CLUSTER}test_cluster_drbd.py"
        "::test_an_offline_node_ends_what_runs_there_when_the_cluster_wants_it",
    ),
    "cluster modify_etc_hosts": (
        "lines in the hosts files of nodes",
        f"{CLUSTER}test_cluster_node_roles.py"
        "::test_hosts_files_list_the_nodes_where_root_lets_them",
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
    "cluster install_image": (
        "the script that its guest runs, on the disk of the instance",
        f"{CLUSTER}test_cluster_images.py::test_untrusted_os_is_installed_by_a_helper_guest",
        "helper",
    ),
    "cluster zeroing_image": (
        "what its guest writes, in the export",
        f"{CLUSTER}test_cluster_images.py::test_export_zeroes_free_space_first",
    ),
    "cluster mac_prefix": (
        "addresses of new NICs",
        "test/unit/ops/test_op_nic_plans.py"
        "::test_a_mac_address_has_the_prefix_of_the_network_or_cluster",
    ),
    "cluster nicparams": (
        "how a NIC is attached",
        "test/unit/ops/test_op_nics.py::test_a_card_follows_the_default_of_the_cluster",
        "default",
    ),
    "disk drbd *": ("words for drbdsetup", f"{DRBD}test_parameter_has_its_effect"),
    "disk drbd protocol": ("words for drbdsetup", f"{DRBD}test_words_for_the_connection"),
    "disk drbd net-custom": ("words for drbdsetup", f"{DRBD}test_words_for_the_connection"),
    "disk drbd data-stripes": ("stripes of the volumes", f"{DRBD}test_stripes_of_both_volumes"),
    "disk drbd meta-stripes": ("stripes of the volumes", f"{DRBD}test_stripes_of_both_volumes"),
    "disk drbd metavg": (
        "where metadata lie",
        "test/unit/ops/test_op_disk_layout.py::test_the_volume_group_of_the_metadata",
    ),
    "disk rbd access": (
        "the image is not mapped",
        f"{NETWORK_STORAGE}test_an_image_that_the_hypervisor_opens_is_never_mapped",
    ),
    "disk rbd pool": (
        "where the image is",
        f"{NETWORK_STORAGE}test_an_image_that_the_hypervisor_opens_is_never_mapped",
    ),
    "disk rbd user-id": (
        "who asks Ceph",
        f"{NETWORK_STORAGE}test_an_image_that_the_hypervisor_opens_is_never_mapped",
    ),
    "disk ext access": (
        "the address that the hypervisor opens",
        "test/unit/storage/test_ext_device.py::test_an_address_is_given_for_user_space_only",
    ),
    "disk gluster access": (
        "the file is opened by its address",
        f"{NETWORK_STORAGE}test_a_gluster_file_is_opened_by_its_address_when_access_says_so",
    ),
    "disk gluster host": (
        "what is mounted",
        f"{NETWORK_STORAGE}test_how_a_gluster_volume_is_mounted_and_addressed",
        "store1",
    ),
    "disk gluster port": (
        "what is mounted",
        f"{NETWORK_STORAGE}test_how_a_gluster_volume_is_mounted_and_addressed",
        "24008",
    ),
    "disk gluster volume": (
        "what is mounted",
        f"{NETWORK_STORAGE}test_how_a_gluster_volume_is_mounted_and_addressed",
        "vms",
    ),
    "hypervisor fake migration_mode": (
        "whether a guest runs while it is moved",
        f"{OPS}test_hvparams_migration_mode_says_how_guests_are_moved",
    ),
    "hypervisor xen-hvm migration_mode": (
        "whether a guest runs while it is moved",
        f"{OPS}test_hvparams_migration_mode_says_how_guests_are_moved",
    ),
    "hypervisor xen-pvm migration_mode": (
        "whether a guest runs while it is moved",
        f"{OPS}test_hvparams_migration_mode_says_how_guests_are_moved",
    ),
    "hypervisor xen-hvm vnc_password_file": (
        "the password of the display",
        "test/unit/hypervisor/test_xen_config.py::test_the_password_of_the_display_is_in_the_file",
    ),
    "backend always_failover": (
        "the guest is stopped to be moved",
        f"{OPS}test_always_failover_stops_the_guest_to_move_it",
    ),
    "node ovs": ("a virtual switch is made", f"{OPS}test_ovs_makes_a_virtual_switch_on_the_node"),
    "node ovs_name": ("its name", f"{OPS}test_ovs_makes_a_virtual_switch_on_the_node"),
    "node ovs_link": ("what is in it", f"{OPS}test_ovs_makes_a_virtual_switch_on_the_node"),
    "node cpu_speed": (
        "the spread of load that balancing sees",
        f"{PLACEMENT}test_cpu_speed_makes_the_load_of_a_fast_node_smaller",
    ),
    "node spindle_count": (
        "how many instances fit",
        f"{PLACEMENT}test_spindle_count_of_a_node_bounds_what_turns_there",
    ),
    "policy std": ("how many instances fit", f"{PLACEMENT}POLICY"),
    "policy spindle-ratio": ("how many instances fit", f"{PLACEMENT}POLICY"),
    "policy vcpu-ratio": ("how many instances fit", f"{PLACEMENT}POLICY"),
    "policy disk-templates": (
        "instances of others are refused",
        f"{OPS}test_ipolicy_of_cluster_and_group",
    ),
    "cluster ipolicy": ("instances are refused", f"{OPS}test_ipolicy_of_cluster_and_group"),
    "cluster beparams": (
        "what a new guest gets",
        f"{OPS}test_beparams_are_what_a_new_guest_gets",
    ),
    "cluster hvparams": (
        "how guests are moved",
        f"{OPS}test_hvparams_migration_mode_says_how_guests_are_moved",
    ),
    "cluster ndparams": (
        "switches on all nodes",
        f"{OPS}test_ndparams_of_cluster_and_group_reach_all_nodes",
    ),
    "cluster candidate_pool_size": (
        "who is a candidate",
        f"{OPS}test_candidate_pool_size_makes_and_unmakes_candidates",
    ),
    "cluster compression_tools": (
        "what a move may use",
        f"{OPS}test_compression_tools_are_those_that_a_move_may_use",
    ),
    "cluster blacklisted_os": (
        "an installation is refused",
        f"{OPS}test_blacklisted_os_is_not_installed",
    ),
    "cluster osparams_private_cluster": (
        "variables of the scripts of an OS",
        f"{OPS}test_osparams_and_private_ones_reach_the_scripts_of_the_os",
    ),
    "cluster shared_file_storage_dir": (
        "where disks are",
        f"{OPS}test_shared_file_storage_dir_is_where_new_disks_are",
    ),
    "cluster default_iallocator_params": (
        "options of the allocator",
        f"{OPS}test_default_iallocator_params_are_given_to_the_allocator",
    ),
    "cluster gluster_storage_dir": (
        "where volumes are mounted",
        "test/unit/node/test_node_disks.py"
        "::test_gluster_volumes_are_mounted_where_gluster_storage_dir_says",
    ),
    "cluster vg_name": (
        "where volumes lie",
        "test/unit/ops/test_op_disk_layout.py::test_vg_name_and_diskparams_of_the_cluster",
    ),
    "cluster diskparams": (
        "where metadata lie",
        "test/unit/ops/test_op_disk_layout.py::test_vg_name_and_diskparams_of_the_cluster",
    ),
    "cluster prealloc_wipe_disks": (
        "new disks are wiped",
        f"{CLUSTER}test_cluster_storage.py::test_new_space_is_wiped_when_the_cluster_wants_it",
    ),
    "cluster max_running_jobs": (
        "how many operations run",
        "test/unit/master/test_master_jobs.py"
        "::test_no_more_operations_run_than_the_limit_allows_and_it_holds_at_once",
    ),
    "cluster max_tracked_jobs": (
        "of how many jobs clients hear at once",
        "test/unit/master/test_master_jobs.py"
        "::test_clients_hear_at_once_of_as_many_jobs_as_are_tracked",
    ),
    "cluster add_uids": (
        "the pool of users, whose effect is above",
        "test/unit/ops/test_op_cluster_settings.py::test_values",
    ),
    "cluster remove_uids": (
        "the pool of users, whose effect is above",
        "test/unit/ops/test_op_cluster_settings.py::test_values",
    ),
    "cluster enabled_data_collectors": (
        "what ganeti-mond reports",
        f"{CLUSTER}test_cluster_watcher.py::test_an_optional_daemon_runs_where_its_options_are_set",
    ),
    "cluster enabled_user_shutdown": (
        "a guest that ends itself stays down",
        f"{CLUSTER}test_cluster_guest_ends.py::test_its_user_shut_it_down",
        "user-shutdown",
    ),
    "cluster data_collector_interval": (
        "how often is measured",
        "test/unit/mond/test_mond.py::test_data_collector_interval_says_how_often_is_measured",
        "interval",
    ),
}
