"""Agents and agent libraries from PyPI."""

from __future__ import annotations

from agents.runners.base import Agent

AGENTS: tuple[Agent, ...] = ()
