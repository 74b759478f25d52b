"""The hypervisor lxc: containers of LXC 3 or later."""
