"""The KVM hypervisor: one QEMU process a guest."""
