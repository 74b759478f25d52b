"""Packaging entry point; everything is stated in pyproject.toml."""

from setuptools import setup

setup()
