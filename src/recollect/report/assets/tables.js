"use strict";
// Sorting: the first click on a heading sorts ascending, the second descending, the third restores the original order.
(() => {
  const collator = new Intl.Collator("en", { numeric: true });
  const turns = { none: "ascending", ascending: "descending", descending: "none" };

  const order = (row, column) => row.cells[column].dataset.order;

  const compare = (first, second, numeric) =>
    numeric ? Number(first) - Number(second) : collator.compare(first, second);

  function sorted(rows, column, numeric, turn) {
    if (turn === "none") return rows;
    const sign = turn === "ascending" ? 1 : -1;
    return [...rows].sort((one, other) => {
      const first = order(one, column), second = order(other, column);
      if (first === undefined || second === undefined) return (first === undefined) - (second === undefined);
      return sign * compare(first, second, numeric);
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    const blocks = [...table.tBodies].map((body) => [body, [...body.rows]]);
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const turn = turns[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", turn);
        for (const [body, rows] of blocks) {
          body.append(...sorted(rows, column, heading.classList.contains("number"), turn));
        }
      });
    });
  }
})();
