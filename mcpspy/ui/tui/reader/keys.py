"""The keys of the detail pane; each has an id, by which it can be given another."""

from __future__ import annotations

from textual.binding import Binding, BindingType

KEYS: list[BindingType] = [
    Binding("down,j", "move(1)", "a line down", show=False, id="detail.down"),
    Binding("up,k", "move(-1)", "a line up", show=False, id="detail.up"),
    Binding("pagedown", "page(1)", "a page down", show=False, id="detail.page-down"),
    Binding("pageup", "page(-1)", "a page up", show=False, id="detail.page-up"),
    Binding("home,g", "top", "first line", show=False, id="detail.top"),
    Binding("end,G", "bottom", "last line", show=False, id="detail.bottom"),
    Binding("1", "view('pretty')", "pretty: the JSON, laid out", show=False, id="detail.pretty"),
    Binding("2", "view('text')", "text: what it says", show=False, id="detail.text"),
    Binding("3", "view('raw')", "raw: its bytes", show=False, id="detail.raw"),
    Binding("4", "view('headers')", "headers: of its HTTP exchange", show=False, id="detail.headers"),
    Binding("space", "toggle_fold", "fold or unfold", show=False, id="detail.toggle"),
    Binding("left,h", "fold", "fold, or go to what is around", show=False, id="detail.fold"),
    Binding("right,l", "unfold", "unfold", show=False, id="detail.unfold"),
    Binding("-", "fold_all(True)", "fold every part", show=False, id="detail.fold-all"),
    Binding("+,=", "fold_all(False)", "unfold all", show=False, id="detail.unfold-all"),
    Binding("o", "open", "open the text of a string; esc closes it", show=False, id="detail.open"),
    Binding("ctrl+f", "search", "search in the message", show=False, id="detail.search"),
    Binding("n", "next(1)", "next hit", show=False, id="detail.next"),
    Binding("N", "next(-1)", "previous hit", show=False, id="detail.previous"),
    Binding("c", "copy_value", "copy the value", show=False, id="detail.copy-value"),
    Binding("C", "copy_path", "copy its path, a JSON pointer", show=False, id="detail.copy-path"),
    Binding("\\", "beside", "side by side, or stacked", show=False, id="detail.beside"),
    Binding("s", "other", "from the request to the response, and back", show=False, id="detail.other"),
    Binding("escape", "close", "leave the string, the search", show=False, id="detail.close"),
]
