"""The pages and the error page. Messages come from `app/i18n.py`; nothing here knows about runs."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.assets import FOR_EVER, PLOTLY, ROOT, STATIC, Assets, asset, plotly_bundle
from app.i18n import Language, choose_language, load_messages

YEAR_S = 31_536_000

router = APIRouter(include_in_schema=False)


class Pages:
    """Renders templates in the language of the request."""

    def __init__(self) -> None:
        loader = FileSystemLoader(ROOT / "templates")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals["asset"] = asset
        self._messages = load_messages(STATIC / "i18n")

    def index(self, request: Request) -> Response:
        """The one page."""
        return self._render(request, "index.html", 200)

    def api(self, request: Request) -> Response:
        """Every call of the API with its line from the OpenAPI document."""
        app: FastAPI = request.app
        calls = [
            {"method": method.upper(), "path": path, "parts": _parts(call["description"])}
            for path, methods in app.openapi()["paths"].items()
            for method, call in methods.items()
        ]
        return self._render(request, "api.html", 200, calls=calls)

    def stages(self, request: Request) -> Response:
        """A run of a GPT-2 stage by stage; which run, the address's fragment says."""
        return self._render(request, "stages.html", 200)

    def compare(self, request: Request) -> Response:
        """Two heads side by side; which ones, the address's fragment says."""
        return self._render(request, "compare.html", 200)

    def error(self, request: Request, status: int, request_id: str | None = None) -> Response:
        """What a browser gets for a wrong address, or when something broke."""
        return self._render(request, "error.html", status, status=status, request_id=request_id)

    def _render(self, request: Request, template: str, status_code: int, **context: object) -> Response:
        language = choose_language(
            request.query_params.get("lang"), request.cookies.get("lang"), request.headers.get("accept-language")
        )
        html = self._templates.get_template(template).render(messages=self._messages[language], **context)
        response = HTMLResponse(
            html, status_code, {"Cache-Control": "private, no-cache", "Vary": "Accept-Language, Cookie"}
        )
        if "lang" in request.query_params:
            _remember(response, language)
        return response


def _parts(text: str) -> list[dict[str, str | bool]]:
    """A description in pieces; what it has between backticks is code."""
    return [{"text": piece, "code": at % 2 == 1} for at, piece in enumerate(text.split("`")) if piece]


def _remember(response: Response, language: Language) -> None:
    response.set_cookie("lang", language, max_age=YEAR_S, samesite="strict", httponly=False)


@router.get("/")
def index(request: Request) -> Response:
    """The page."""
    pages: Pages = request.app.state.pages
    return pages.index(request)


@router.get("/docs")
def docs(request: Request) -> Response:
    """The API for readers."""
    pages: Pages = request.app.state.pages
    return pages.api(request)


@router.get("/stages")
def stages(request: Request) -> Response:
    """Where our Transformer and transformers' GPT-2 part."""
    pages: Pages = request.app.state.pages
    return pages.stages(request)


@router.get("/compare")
def compare(request: Request) -> Response:
    """Two heads of one or two runs, and the difference between them."""
    pages: Pages = request.app.state.pages
    return pages.compare(request)


@router.get(f"/static/{PLOTLY}")
def plotly() -> Response:
    """Plotly, from the installed package."""
    return FileResponse(plotly_bundle(), media_type="text/javascript", headers={"Cache-Control": FOR_EVER})


def install(app: FastAPI) -> None:
    """Add the page and the static files."""
    app.state.pages = Pages()
    app.include_router(router)
    app.mount("/static", Assets(directory=STATIC), name="static")
