"use strict";

// Draws every plot of the page from the specification beside it, in the colours of the page, and again at the
// width of the paper when the page is printed.
(function () {
  const PAPER_WIDTH = 680;
  const SMALL_WIDTH = 320;
  const plots = Array.from(document.querySelectorAll(".plot"));
  const specifications = document.getElementById("plots").textContent;
  const drawing = JSON.parse(document.getElementById("drawing").textContent);
  const dark = JSON.parse(document.getElementById("dark").textContent);
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");

  function inColours(isDark) {
    let text = specifications;
    for (const [light, other] of isDark ? Object.entries(dark) : []) {
      text = text.replaceAll(JSON.stringify(light), JSON.stringify(other));
    }
    return JSON.parse(text);
  }

  function draw(isDark, onPaper) {
    const all = inColours(isDark);
    return plots.map((plot) => {
      const specification = all[plot.id.replace("plot-", "")];
      for (const trace of specification.data) {
        if (trace.type === "heatmap") {
          const figures = JSON.parse(document.getElementById("figures").textContent);
          const rows = figures.rounds.map.states;
          trace.text = rows.map((row) => Array.from(row, (letter) => trace.meta[letter]));
        }
      }
      const small = plot.classList.contains("small");
      if (onPaper) {
        Object.assign(specification.layout, { autosize: false, width: small ? SMALL_WIDTH : PAPER_WIDTH });
      }
      // There is no room for a toolbar above a small one.
      const how = small ? { ...drawing, displayModeBar: false } : drawing;
      return Plotly.react(plot, specification.data, specification.layout, how);
    });
  }

  Promise.all(draw(scheme.matches, false)).then(() =>
    document.documentElement.setAttribute("data-drawn", String(plots.length)),
  );

  scheme.addEventListener("change", () => draw(scheme.matches, false));
  window.addEventListener("beforeprint", () => draw(false, true));
  window.addEventListener("afterprint", () => draw(scheme.matches, false));
})();
