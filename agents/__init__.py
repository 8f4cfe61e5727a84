"""The agents room: what to do next, decided from facts alone.

Names are loaded when they are first asked for, so that an effector which only needs tools does not bring the runtime,
a model client or a store with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazily import names_of

if TYPE_CHECKING:
    from .aggregate import Aggregate, applies
    from .app import App, Input
    from .budgets import Budget, Price, Spent
    from .client import AsyncClient, AsyncHandle, Client, Handle
    from .clients.openai_compatible import OpenAICompatible
    from .committer import Committer
    from .context import ActivationContext
    from .defining import Agent, agent
    from .facts import Failure
    from .machine import StateMachine, When
    from .models import ModelClient, ModelRequest, ModelResponse, ToolCall, Usage
    from .outcome import Complete, EffectResult, Suspend
    from .retry import RetryPolicy
    from .schedules import Schedule, cron, every
    from .sending import Receipt, send
    from .tool_policies import Rate, Retryable
    from .tools import IntentInfo, Tool, ToolSet, tool
    from .worker import Worker, WorkerSettings

_WHERE = {
    "AsyncClient": "client",
    "AsyncHandle": "client",
    "Client": "client",
    "Handle": "client",
    "Schedule": "schedules",
    "cron": "schedules",
    "every": "schedules",
    "ActivationContext": "context",
    "Agent": "defining",
    "Aggregate": "aggregate",
    "App": "app",
    "Budget": "budgets",
    "Price": "budgets",
    "Spent": "budgets",
    "Committer": "committer",
    "Complete": "outcome",
    "ContinueWith": "linear",
    "Verdict": "linear",
    "EffectResult": "outcome",
    "Failure": "facts",
    "Input": "app",
    "IntentInfo": "tools",
    "ModelClient": "models",
    "ModelRequest": "models",
    "ModelResponse": "models",
    "OpenAICompatible": "clients.openai_compatible",
    "Rate": "tool_policies",
    "Receipt": "sending",
    "RetryPolicy": "retry",
    "Retryable": "tool_policies",
    "StateMachine": "machine",
    "Suspend": "outcome",
    "Tool": "tools",
    "ToolCall": "models",
    "ToolSet": "tools",
    "Usage": "models",
    "When": "machine",
    "Worker": "worker",
    "WorkerSettings": "worker",
    "agent": "defining",
    "applies": "aggregate",
    "send": "sending",
    "tool": "tools",
}

__all__ = [
    "ActivationContext",
    "Agent",
    "Aggregate",
    "App",
    "AsyncClient",
    "AsyncHandle",
    "Budget",
    "Client",
    "Committer",
    "Complete",
    "EffectResult",
    "Failure",
    "Handle",
    "Input",
    "IntentInfo",
    "ModelClient",
    "ModelRequest",
    "ModelResponse",
    "OpenAICompatible",
    "Price",
    "Rate",
    "Receipt",
    "RetryPolicy",
    "Retryable",
    "Schedule",
    "Spent",
    "StateMachine",
    "Suspend",
    "Tool",
    "ToolCall",
    "ToolSet",
    "Usage",
    "When",
    "Worker",
    "WorkerSettings",
    "agent",
    "applies",
    "cron",
    "every",
    "send",
    "tool",
]

__getattr__, __dir__ = names_of(__name__, _WHERE)
