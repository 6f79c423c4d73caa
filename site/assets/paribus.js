// Everything on this site works without this file. It adds two things: tables that can be sorted by a column, and a
// choice of card and scenario that replaces the chart in place where the site is served over http.
(() => {
  "use strict";

  const number = (cell) => (cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : NaN);

  const sortBy = (table, index, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const x = number(a.cells[index]);
      const y = number(b.cells[index]);
      if (Number.isNaN(x) && Number.isNaN(y)) {
        return a.cells[index].textContent.localeCompare(b.cells[index].textContent) * (down ? -1 : 1);
      }
      if (Number.isNaN(x)) return 1; // what wasn't measured stays last
      if (Number.isNaN(y)) return -1;
      return down ? y - x : x - y;
    });
    body.append(...rows);
  };

  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, index, down);
      });
    });
  };

  const enhance = (root) => root.querySelectorAll("table.sortable").forEach(makeSortable);

  const swap = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("board");
    if (!fresh) throw new Error("no board");
    for (const link of fresh.querySelectorAll("[href]")) {
      const target = link.getAttribute("href");
      if (!target.startsWith("#")) link.setAttribute("href", new URL(target, address).href);
    }
    const old = document.getElementById("board");
    const title = fresh.querySelector("h1");
    if (title && !old.querySelector("h1")) {
      // The front page has a heading of its own: the board's goes one level down.
      const lower = document.createElement("h2");
      lower.id = title.id;
      lower.append(...title.childNodes);
      title.replaceWith(lower);
    }
    old.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    enhance(fresh);
    const heading = fresh.querySelector("h1, h2");
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  };

  if (location.protocol.startsWith("http") && document.querySelector("main > #board")) {
    document.addEventListener("click", (event) => {
      const link = event.target.closest && event.target.closest("#board .choices a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      swap(link.href).then(
        () => history.pushState(null, "", link.href),
        () => location.assign(link.href),
      );
    });
    addEventListener("popstate", () => location.reload());
  }

  enhance(document);
})();
