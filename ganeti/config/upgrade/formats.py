"""Which keys and parameters other versions of the configuration know. Data only.

The tables are those of the interface of 3.1. Other keys of our objects are ours
alone and mean nothing to anybody else. They are found by comparing, without a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Kind of object -> keys in ``config.data``.
OBJECT_KEYS: Mapping[str, frozenset[str]] = {
    "config": _words(
        """
        version cluster nodes nodegroups instances networks disks filters ctime mtime serial_no
        """
    ),
    "cluster": _words(
        """
        rsahostkeypub dsahostkeypub highest_used_port tcpudp_port_pool mac_prefix
        volume_group_name reserved_lvs drbd_usermode_helper master_node master_ip master_netdev
        master_netmask use_external_mip_script cluster_name file_storage_dir
        shared_file_storage_dir gluster_storage_dir enabled_hypervisors hvparams os_hvp beparams
        osparams osparams_private_cluster nicparams ndparams diskparams candidate_pool_size
        modify_etc_hosts modify_ssh_setup maintain_node_health uid_pool default_iallocator
        default_iallocator_params hidden_os blacklisted_os primary_ip_family prealloc_wipe_disks
        ipolicy hv_state_static disk_state_static enabled_disk_templates candidate_certs
        max_running_jobs max_tracked_jobs install_image instance_communication_network
        zeroing_image compression_tools enabled_user_shutdown data_collectors ssh_key_type
        ssh_key_bits ctime mtime uuid serial_no tags
        """
    ),
    "nodes": _words(
        """
        name primary_ip secondary_ip master_candidate offline drained group master_capable
        vm_capable ndparams powered hv_state_static disk_state_static ctime mtime uuid serial_no
        tags
        """
    ),
    "nodegroups": _words(
        """
        name members ndparams alloc_policy ipolicy diskparams networks hv_state_static
        disk_state_static ctime mtime uuid serial_no tags
        """
    ),
    "networks": _words(
        """
        name mac_prefix network network6 gateway gateway6 reservations ext_reservations ctime
        mtime uuid serial_no tags
        """
    ),
    "filters": _words("watermark priority predicates action reason_trail uuid"),
    "instances": _words(
        """
        name primary_node os hypervisor hvparams beparams osparams osparams_private admin_state
        admin_state_source nics disks disks_active network_port ctime mtime uuid serial_no tags
        forthcoming
        """
    ),
    "disks": _words(
        """
        logical_id dev_type children nodes iv_name size mode name spindles params ctime mtime
        uuid serial_no forthcoming
        """
    ),
    "nic": _words("mac ip nicparams network name uuid"),
}

#: Hypervisor -> its parameters.
HV_PARAMS: Mapping[str, frozenset[str]] = {
    "chroot": _words("init_script"),
    "fake": _words("migration_mode"),
    "kvm": _words(
        """
        acpi boot_order cdrom2_image_path cdrom_disk_type cdrom_image_path cpu_cores cpu_mask
        cpu_sockets cpu_threads cpu_type disk_aio disk_cache disk_discard disk_type
        floppy_image_path initrd_path kernel_args kernel_path keymap kvm_extra kvm_flag kvm_path
        kvm_pci_reservations machine_version mem_path migration_bandwidth migration_caps
        migration_downtime migration_mode migration_port nic_type reboot_behavior root_path
        scsi_controller_type security_domain security_model serial_console serial_speed soundhw
        spice_bind spice_image_compression spice_ip_version spice_jpeg_wan_compression
        spice_password_file spice_playback_compression spice_streaming_video spice_tls_ciphers
        spice_use_tls spice_use_vdagent spice_zlib_glz_wan_compression usb_devices usb_mouse
        use_chroot use_guest_agent use_localtime user_shutdown vga vhost_net virtio_net_queues
        vnc_bind_address vnc_password_file vnc_tls vnc_x509_path vnc_x509_verify vnet_hdr
        """
    ),
    "lxc": _words(
        """
        cpu_mask devices drop_capabilities extra_cgroups extra_config num_ttys startup_timeout
        """
    ),
    "xen-hvm": _words(
        """
        acpi blockdev_prefix boot_order cdrom_image_path cpu_cap cpu_mask cpu_weight cpuid
        device_model disk_type kernel_path migration_mode migration_port nic_type pae pci_pass
        reboot_behavior soundhw use_localtime vif_script vif_type viridian vnc_bind_address
        vnc_password_file
        """
    ),
    "xen-pvm": _words(
        """
        blockdev_prefix bootloader_args bootloader_path cpu_cap cpu_mask cpu_weight cpuid
        initrd_path kernel_args kernel_path migration_mode migration_port reboot_behavior
        root_path soundhw use_bootloader vif_script
        """
    ),
}
