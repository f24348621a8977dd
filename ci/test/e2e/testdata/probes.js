// What the tests of report.html ask of the page. Empty means that all is well.
globalThis.probe = (() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const words = (node) => node.textContent.replace(/\s+/g, " ").trim();
  const stepsOf = () => all("details.step[id]");

  // The name of an element as aria-label and aria-labelledby give it.
  const labelOf = (e) => {
    const ids = (e.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
    return e.getAttribute("aria-label") || ids.map((id) => words(document.getElementById(id))).join(" ");
  };

  // Colours: [red, green, blue, alpha], the first three from 0 to 255.
  const colour = (text) => {
    const n = (text.match(/[\d.]+/g) || []).map(Number);
    return n.length < 3 ? [0, 0, 0, 0] : [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const background = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      layers.push(colour(getComputedStyle(e).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };

  // The text nodes that somebody sees.
  const texts = () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const out = [];
    for (let n; (n = walker.nextNode());) {
      const e = n.parentElement;
      if (words(n) && !e.closest("script, style, .hidden, .skip") && e.checkVisibility() && e.getBoundingClientRect().width > 1) {
        out.push(n);
      }
    }
    return out;
  };

  return {
    texts,
    open: () => stepsOf().filter((d) => d.open).length,
    brightness: () => luminance(background(document.body)),

    steps: () => stepsOf().map((d) => ({
      ID: d.id,
      Name: words(d.querySelector(".name")),
      Summary: words(d.querySelector("summary")),
      Log: (d.querySelector(".log") || { textContent: "" }).textContent,
      Text: d.textContent,
      Row: words(all(".timeline a").find((a) => a.getAttribute("href") === "#" + d.id).closest("tr")),
    })),

    // Where text of others has become a part of the page.
    intruders: () => {
      const found = all("img, iframe, object, embed, base, form, input, script[src], link[rel=stylesheet]").map((e) => e.outerHTML);
      if (all("script").length !== 1 || all("style").length !== 1) {
        found.push("not exactly one script and one style");
      }
      for (const e of all("*")) {
        for (const a of e.attributes) {
          if (/^on/i.test(a.name) || a.name === "style" || /^\s*javascript:/i.test(a.value)) {
            found.push(e.tagName + " with " + a.name + "=" + a.value);
          }
        }
      }
      if (document.title.includes("owned")) {
        found.push("a script has changed the title");
      }
      return found.join("\n");
    },

    // Without colours the critical path has a lane with a name, filled and joined
    // bars, and words for those who see no bars.
    path: () => {
      const bodies = all(".timeline tbody").filter((b) => b.querySelector(".bar"));
      const on = all("tr:not(.lane)", bodies[0]);
      const beside = bodies.slice(1).flatMap((b) => all("tr:not(.lane)", b));
      const says = (row) => row.querySelector(".hidden").textContent.includes("on the critical path");
      const filled = (row) => {
        const style = getComputedStyle(row.querySelector(".bar"));
        return style.fill === style.stroke;
      };
      const joined = all(".join", bodies[0]).length === 2 * (on.length - 1);
      return on.every(says) && on.every(filled) && joined && !beside.some(says) && !beside.some(filled) ? "" : "it is not";
    },

    headings: () => {
      let last = 0;
      for (const h of all("h1, h2, h3, h4, h5, h6")) {
        const level = Number(h.tagName[1]);
        if (level > last + 1) {
          return "h" + level + " after h" + last + ": " + words(h);
        }
        last = level;
      }
      return all("h1").length === 1 ? "" : "not one h1";
    },

    ids: () => {
      const ids = all("[id]").map((e) => e.id);
      const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
      const named = all("[aria-labelledby]").flatMap((e) => e.getAttribute("aria-labelledby").split(" "));
      const linked = all("a[href^='#'], use").map((e) => e.getAttribute("href").slice(1));
      const missing = named.concat(linked).filter((id) => !ids.includes(id));
      return twice.concat(missing).join(" ");
    },

    // What has the focus: "link …", "closed summary …"; empty at the end.
    focus: () => {
      const e = document.activeElement;
      if (!e || e === document.body || e === document.documentElement) {
        return "";
      }
      const style = getComputedStyle(e);
      const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ? "" : " (no outline)";
      switch (e.tagName) {
        case "SUMMARY":
          return (e.parentElement.open ? "open " : "closed ") + "summary " + words(e.querySelector(".name")) + seen;
        case "A":
          return "link " + words(e) + seen;
        case "BUTTON":
          return "button " + words(e) + seen;
      }
      return (e.getAttribute("role") || e.tagName) + " " + labelOf(e) + seen;
    },

    faint: (least) => texts().flatMap((n) => {
      const e = n.parentElement;
      const style = getComputedStyle(e);
      const below = background(e);
      const ratio = contrast(over(colour(e.namespaceURI.endsWith("svg") ? style.fill : style.color), below), below);
      return ratio < least ? [ratio.toFixed(2) + " " + e.tagName + "." + e.getAttribute("class") + ": " + words(n).slice(0, 40)] : [];
    }),

    faintBars: (least) => all(".bar, .join").flatMap((b) => {
      const ratio = contrast(colour(getComputedStyle(b).stroke), background(b.closest("td, caption")));
      return ratio < least ? [ratio.toFixed(2) + " " + b.getAttribute("class")] : [];
    }),

    small: () => texts().filter((n) => parseFloat(getComputedStyle(n.parentElement).fontSize) < 12).map(words).join("\n"),
  };
})();
