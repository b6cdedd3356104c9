"""Access to the API server of Kubernetes, as the context of a kubeconfig, or a pod's account."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any

from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.errors import SettingError
from streamplace.io.extras import extra
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    import httpx

API_SECONDS = 30.0
"""Timeout of a request to the API server, which answers most of them within milliseconds."""
TOKEN_SECONDS = 60.0
"""Time for which a token is used; a pod's is replaced long before it expires."""
_OF_CONTENTS = (AttributeError, KeyError, TypeError, ValueError)
"""Errors of a kubeconfig that is not what it should be."""
MERGE = "application/merge-patch+json"


class ApiRefusal(FlinkError):
    """An error of the API server."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        # Its HTTP status: 403 for a right that is missing, 404 for a resource that does not exist,
        # 409 for a patch of a resource that was changed meanwhile.
        self.status = status


@dataclass(frozen=True, slots=True)
class KubernetesApi:
    """The API server, and how requests are authenticated."""

    server: str
    client: "httpx.Client"

    def get(self, path: str) -> Any:
        """Parsed answer to a GET request."""
        return self._asked("GET", path)

    def patch(self, path: str, document: Mapping[str, Any]) -> Any:
        """Merge a document into a resource; return the resource."""
        return self._asked("PATCH", path, document)

    def _asked(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        import httpx

        content = None if document is None else json.dumps(document)
        headers = {} if document is None else {"Content-Type": MERGE}
        try:
            answer = self.client.request(
                method, self.server + path, content=content, headers=headers, timeout=API_SECONDS
            )
        except httpx.HTTPError as error:
            reason = shown(str(error) or type(error).__name__, 200)
            raise NoAnswer(f"no Kubernetes answers at {self.server}: {reason}") from None
        try:
            parsed = answer.json()
        except ValueError:
            parsed = None
        found: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        if answer.status_code >= 500 or answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise NoAnswer(f"Kubernetes answers {answer.status_code} at {self.server}")
        if answer.status_code >= 400:
            message = str(found.get("message") or answer.text.strip())
            raise ApiRefusal(_complaint(answer.status_code, message), answer.status_code)
        if answer.status_code >= 300 or not found:
            raise FlinkError(
                f"{self.server} answers {answer.status_code}, and not as Kubernetes does; correct "
                "the kubeconfig"
            )
        return found


def _complaint(status: int, answer: str) -> str:
    message = shown(answer, 300)
    if status == 401:
        return "Kubernetes does not accept the credentials of the kubeconfig; log in again"
    if status == 403:
        return f"a right is missing: {message}"
    return f"Kubernetes answers {status}: {message}"


def usual_api() -> KubernetesApi:
    """API server of the current context of the kubeconfig, or of the pod that this runs in."""
    extra("lightkube")
    import httpx
    import yaml
    from lightkube import KubeConfig
    from lightkube.config.client_adapter import verify_cluster
    from lightkube.core.exceptions import ConfigError

    try:
        config = KubeConfig.from_env().get()
        if config is None or config.user is None:
            raise SettingError("the kubeconfig has no current context with a user; choose one")
        verify = verify_cluster(config.cluster, config.user, config.abs_file, trust_env=False)
        authorized = _authorization(config.user)
        authorized(httpx.Request("GET", config.cluster.server))
    except SettingError:
        raise
    except (ConfigError, OSError, yaml.YAMLError, *_OF_CONTENTS) as error:
        reason = shown(str(error), 200)
        if isinstance(error, _OF_CONTENTS):
            reason = "the kubeconfig lacks something, or has it in another form"
        raise SettingError(
            f"no access to Kubernetes: {reason}; name a kubeconfig in $KUBECONFIG"
        ) from None
    client = httpx.Client(auth=authorized, verify=verify, trust_env=False)
    return KubernetesApi(config.cluster.server.rstrip("/"), client)


def _authorization(user: Any) -> Callable[["httpx.Request"], "httpx.Request"]:
    """Function that adds the header of a user, whose token is read again after a while."""
    from lightkube.config.client_adapter import user_auth

    auth, since = user_auth(user), monotonic()

    def authorized(request: "httpx.Request") -> "httpx.Request":
        nonlocal auth, since
        if monotonic() - since > TOKEN_SECONDS:
            auth, since = user_auth(user), monotonic()
        if auth is not None:
            next(auth.sync_auth_flow(request))
        return request

    return authorized
