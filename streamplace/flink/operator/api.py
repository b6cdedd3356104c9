"""Access to the API server of Kubernetes, by the context of a kubeconfig or a pod's account."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic_core import from_json

from streamplace.errors import SettingError
from streamplace.flink.rest.answers import missing_rule, parse_complaint
from streamplace.flink.rest.client import FlinkError, NoAnswer, send_request
from streamplace.io.extras import extra
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    import httpx

API_SECONDS = 30.0
"""Timeout of a request to the API server, which answers most requests within milliseconds."""
TOKEN_SECONDS = 60.0
"""Time for which a token is used; that of a pod is replaced long before it expires."""
_CONTENT_ERRORS = (AttributeError, KeyError, TypeError, ValueError)
"""Errors of an invalid kubeconfig."""
MERGE = "application/merge-patch+json"


class ApiRefusal(FlinkError):
    """An error of the API server."""

    def __init__(self, message: str, status: int, missing: str = "") -> None:
        super().__init__(message)
        # HTTP status: 403 for a missing right, 409 for a patch of a resource that has changed.
        self.status = status
        self.missing = missing  # name of the resource that does not exist; empty for other errors


@dataclass(frozen=True, slots=True)
class KubernetesApi:
    """The API server, and how requests are authenticated."""

    server: str
    client: "httpx.Client"

    def get(self, path: str) -> Any:
        """Parsed answer to a GET request."""
        return self._request("GET", path)

    def patch(self, path: str, document: Mapping[str, Any]) -> Any:
        """Merge a document into a resource; return the resource."""
        return self._request("PATCH", path, document, MERGE)

    def create(self, folder: str, document: Mapping[str, Any]) -> Any:
        """Create a resource; return it."""
        return self._request("POST", folder, document)

    def replace(self, path: str, document: Mapping[str, Any]) -> Any:
        """Replace a resource if the document has its current version; return it."""
        return self._request("PUT", path, document)

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Any:
        import httpx

        target = f"{urlsplit(self.server).path}{path}"
        try:
            answer, content = send_request(
                self.client, method, self.server, target, API_SECONDS, body, kind=kind
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = shown(str(error) or type(error).__name__, 200)
            raise NoAnswer(f"no Kubernetes answers at {self.server}: {reason}") from None
        parsed = None
        with suppress(ValueError):  # also for NaN and for too deep nesting
            parsed = from_json(content, allow_inf_nan=False)
        document: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        status, complaint = answer.status_code, parse_complaint(content)
        if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise NoAnswer(f"Kubernetes answers {status} at {self.server}: {shown(complaint, 300)}")
        if status >= 400:
            raise ApiRefusal(_complaint(status, complaint), status, _missing_resource(document))
        if status >= 300 or not document:
            raise NoAnswer(
                f"{self.server} answers {status}, and not as Kubernetes does; correct the "
                "kubeconfig"
            )
        return document


def _missing_resource(answer: Mapping[str, Any]) -> str:
    """Name of the resource that does not exist; empty for other errors, such as a gateway's."""
    if answer.get("reason") != "NotFound" or not isinstance(answer.get("details"), dict):
        return ""
    return str(answer["details"].get("name") or "")


def _complaint(status: int, answer: str) -> str:
    if status == 401:
        return "Kubernetes does not accept the credentials of the kubeconfig; log in again"
    if status == 403:
        return f"a right is missing: {shown(missing_rule(answer), 300)}"
    return f"Kubernetes answers {status}: {shown(answer, 300)}"


def usual_api() -> KubernetesApi:
    """API server of the current context of the kubeconfig, or of the pod of this process."""
    extra("lightkube", "flink")
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
    except (ConfigError, OSError, yaml.YAMLError, httpx.InvalidURL, *_CONTENT_ERRORS) as error:
        reason = shown(str(error), 200)
        if isinstance(error, _CONTENT_ERRORS):
            reason = "a field of the kubeconfig is missing or invalid"
        raise SettingError(
            f"no access to Kubernetes: {reason}; name a kubeconfig in $KUBECONFIG"
        ) from None
    client = httpx.Client(auth=authorized, verify=verify, trust_env=False)
    return KubernetesApi(config.cluster.server.rstrip("/"), client)


def _authorization(user: Any) -> Callable[["httpx.Request"], "httpx.Request"]:
    """Function that adds the header of a user; it reads the token again after a while."""
    from lightkube.config.client_adapter import user_auth
    from lightkube.core.exceptions import ConfigError

    latest, since = user_auth(user), monotonic()

    def authorized(request: "httpx.Request") -> "httpx.Request":
        nonlocal latest, since
        if monotonic() - since > TOKEN_SECONDS:
            with suppress(ConfigError, OSError, *_CONTENT_ERRORS):  # while it is replaced
                renewed = user_auth(user)
                next(renewed.sync_auth_flow(request))
                latest, since = renewed, monotonic()
                return request
        if latest is not None:
            next(latest.sync_auth_flow(request))
        return request

    return authorized
