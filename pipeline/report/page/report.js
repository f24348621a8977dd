"use strict";
// The page works without this: it only opens what a link points to, and all logs
// at once.
(function () {
  const steps = Array.from(document.querySelectorAll("details.step"));
  const openAll = (open) => steps.forEach((d) => { d.open = open; });
  const openTarget = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.querySelector("summary").focus();
      target.scrollIntoView();
    }
  };
  document.getElementById("open-all").addEventListener("click", () => openAll(true));
  document.getElementById("close-all").addEventListener("click", () => openAll(false));
  document.querySelector(".tools").hidden = steps.length === 0;
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => openAll(true));
  // A second click on the same link changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#step-']");
    if (link && link.getAttribute("href") === location.hash) {
      openTarget();
    }
  });
  openTarget();
})();
