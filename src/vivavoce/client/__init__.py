"""`Client` and `AsyncClient`: a server of vivavoce, from Python.

What goes wrong is a `VivavoceError`: a `UsageError` says in the server's words what is wrong with a request, a `Fault`
that the server could not be reached or broke.
"""

from vivavoce.client.asynchronous import LOCAL, AsyncClient, AsyncJob
from vivavoce.client.synchronous import Client, Job

__all__ = ["LOCAL", "AsyncClient", "AsyncJob", "Client", "Job"]
