"use strict";

// Draws every plot of the page from the specification beside it, and again at the width of the paper when the
// page is printed.
(function () {
  const PAPER_WIDTH = 680;
  const plots = Array.from(document.querySelectorAll(".plot"));
  const specifications = JSON.parse(document.getElementById("plots").textContent);
  const drawing = JSON.parse(document.getElementById("drawing").textContent);
  const figures = JSON.parse(document.getElementById("figures").textContent);

  const drawn = plots.map((plot) => {
    const specification = specifications[plot.id.replace("plot-", "")];
    for (const trace of specification.data) {
      if (trace.type === "heatmap") {
        const rows = figures.rounds.map.states;
        trace.text = rows.map((row) => Array.from(row, (letter) => trace.meta[letter]));
      }
    }
    return Plotly.newPlot(plot, specification.data, specification.layout, drawing);
  });
  Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", String(plots.length)));

  window.addEventListener("beforeprint", () => {
    plots.forEach((plot) => Plotly.relayout(plot, { autosize: false, width: PAPER_WIDTH }));
  });
  window.addEventListener("afterprint", () => {
    plots.forEach((plot) => Plotly.relayout(plot, { autosize: true, width: null }));
  });
})();
