"""Xen through its tool stack ``xl``: paravirtual (PV, PVH) and full virtualisation (HVM)."""
