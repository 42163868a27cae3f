// Runs when all frames of the page around it are there: looks at what each shows, and writes that into the page as JSON.

/** A CSS colour as red, green, blue and opacity; null for none. */
function colour(text) {
  const parts = text.match(/[\d.]+/g)?.map(Number);
  return parts && parts.length >= 3 ? { rgb: parts.slice(0, 3), opacity: parts[3] ?? 1 } : null;
}

/** WCAG 2.2: contrast ratio. */
function contrast(a, b) {
  const luminance = ({ rgb }) => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [luminance(a) + 0.05, luminance(b) + 0.05].sort((x, y) => x - y);
  return high / low;
}

/** What an element stands on: the nearest background that is not transparent, or a figure's own sheet. */
function background(view, element) {
  const sheet = element.ownerSVGElement?.querySelector(':scope > rect[width="100%"]');
  if (sheet) return colour(view.getComputedStyle(sheet).fill);
  for (let at = element; at; at = at.parentElement) {
    const here = colour(view.getComputedStyle(at).backgroundColor);
    if (here && here.opacity === 1) return here;
  }
  return { rgb: view.matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255] };
}

/** Words that can hardly be told from what they stand on. Values in a heat map's cells stand on the cells. */
function faint(view, root) {
  const found = new Set();
  for (const element of root.querySelectorAll("*")) {
    const says = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!says || element.closest("style, script, title, [fill='#111111']") || !element.getClientRects().length) continue;
    const style = view.getComputedStyle(element);
    const ink = colour(element.ownerSVGElement ? style.fill : style.color);
    const ratio = ink && contrast(ink, background(view, element));
    if (ratio && ratio < 4.5) found.add(`${element.tagName} "${element.textContent.trim().slice(0, 40)}": ${ratio.toFixed(1)}`);
  }
  return [...found];
}

/** What sticks out of the page to the right, and has no box of its own to scroll in. */
function wide(view, root) {
  const scrolls = element => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      if (["auto", "scroll", "hidden"].includes(view.getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };
  const sticks = element => element.getBoundingClientRect().right > view.innerWidth + 1 && !scrolls(element);
  return [...root.querySelectorAll("*")].filter(sticks).map(element => element.tagName).slice(0, 5);
}

function look(frame) {
  const [view, root] = [frame.contentWindow, frame.contentDocument.documentElement];
  root.querySelectorAll("details").forEach(details => (details.open = true));
  const isDrawing = root.tagName === "svg";
  const figures = isDrawing ? [root] : [...root.querySelectorAll("figure svg")];
  const main = root.querySelector("main") ?? root;
  return {
    page: frame.dataset.page,
    room: isDrawing ? view.innerWidth : root.clientWidth,
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    needed: isDrawing ? Math.floor(root.getBoundingClientRect().right) : root.scrollWidth,
    wide: isDrawing ? [] : wide(view, root),
    faint: faint(view, root),
    missing: [...root.querySelectorAll("img")].filter(image => !image.naturalWidth).map(image => image.src),
    // As parts of the place where they stand.
    figures: figures.map(svg => svg.getBoundingClientRect().width / (svg.closest("figure") ?? main).getBoundingClientRect().width),
    // What a page that changes says by now.
    words: "words" in frame.dataset ? root.innerText : "",
    curves: root.querySelectorAll("figure path").length,
    sheet: background(view, figures[0]?.querySelector("text") ?? main).rgb,
  };
}

function report() {
  const seen = [...document.querySelectorAll("iframe")].map(look);
  // Nothing in it that HTML would write otherwise.
  const text = JSON.stringify(seen).replace(/[<>&]/g, c => "\\u00" + c.charCodeAt(0).toString(16));
  document.getElementById("seen").textContent = text;
}

addEventListener("load", report);
