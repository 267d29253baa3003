"""The web page at ``/ui``, for people who look after a memory.

A view is a module with a ``router`` of `PageRoute`: its functions take the caller with the right that they need, as the
routes of the API do (`Reader`, `Writer`), call the same verbs, and answer with `render.page` and a template.

    @router.get(HERE + "/nights")
    def show_nights(request: Request, call: Reader) -> Response:
        return page(request, "nights.html", runs=…)

    @router.post(HERE + "/nights/{id}/undo")
    @audited(Action.UNDO)
    def undo_night(request: Request, call: Writer, id: RunId, form: Filled) -> Response:
        undo_run(call.runtime, call.tenant_id, id)
        return done(request, "nights", notice="undone")

To add one: the module in `views.VIEWS`; its place in `navigation.ENTRIES`, if it is about the whole tenant, and what
its acts say in `navigation.NOTICES`; a template that extends ``layout.html`` and sets ``view`` to the name of its
entry.

A view below ``/ui/agents/{agent}/users/{user}`` is held to the person of the key by itself, since `PageRoute` checks
the names in its address. Addresses are made with ``url('agents', agent, 'users', user)``, which keeps slashes of names.
Every form has ``<input type="hidden" name="token" value="{{ token }}">``; the macro ``act`` of ``parts.html`` makes one
of a button, ``sure`` one that is asked for twice. An act that the API writes into the audit log has the same `audited`.
A form with a file is ``multipart/form-data``; its act is marked with `takes_file` and takes the file as `File`.
There is no script of our own: what changes by itself is a part that htmx fetches (``hx-get``), whose errors are notes.
"""
