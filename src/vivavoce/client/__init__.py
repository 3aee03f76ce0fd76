"""`Client` and `AsyncClient`: a server of vivavoce, from Python.

Errors are `VivavoceError`s: a `UsageError` has the server's message about a wrong request, a `Fault` means that the
server could not be reached or failed.
"""

from vivavoce.client.asynchronous import AsyncClient, AsyncJob
from vivavoce.client.connection import LOCAL
from vivavoce.client.synchronous import Client, Job

__all__ = ["LOCAL", "AsyncClient", "AsyncJob", "Client", "Job"]
