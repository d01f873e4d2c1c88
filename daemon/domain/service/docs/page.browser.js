/**
 * What the page of /docs does in a browser: the choice between light and dark, search over operations, headers and errors, and
 * copying examples. The page reads the same without it: what needs it is hidden until it runs.
 */
(() => {
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;

  /** The person's choice for this browser, in the cookie that all pages of the service have. */
  const stored = {
    get: () => /(?:^|;\s*)roomd-colours=(light|dark)(?:;|$)/.exec(document.cookie)?.[1] ?? "system",
    set: (theme) => {
      // biome-ignore lint/suspicious/noDocumentCookie: the server reads it for its other pages, and not all browsers have a cookie store.
      document.cookie = `roomd-colours=${theme}; Path=/; Max-Age=34560000; SameSite=Lax`;
    },
  };

  // Before the page is drawn.
  root.dataset.colours = stored.get();

  function offerThemes(button) {
    const show = () => {
      button.textContent = `Colours: ${root.dataset.colours}`;
    };
    button.addEventListener("click", () => {
      root.dataset.colours = THEMES[(THEMES.indexOf(root.dataset.colours) + 1) % THEMES.length];
      stored.set(root.dataset.colours);
      show();
    });
    button.hidden = false;
    show();
  }

  function offerCopy(button) {
    const text = button.parentElement.querySelector("pre").textContent;
    button.addEventListener("click", async () => {
      try {
        await copy(text);
        button.textContent = "copied";
      } catch {
        button.textContent = "not copied";
      }
      setTimeout(() => {
        button.textContent = "copy";
      }, 1500);
    });
    button.hidden = false;
  }

  /** A page without TLS has no clipboard of its own, but may copy what is selected. */
  async function copy(text) {
    if (navigator.clipboard) return await navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "offscreen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("the browser did not copy");
  }

  function offerSearch(field) {
    const items = [...document.querySelectorAll("[data-search]")];
    const groups = [...document.querySelectorAll(".group")];
    const none = document.querySelector(".none");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      root.classList.toggle("searching", words.length > 0);
      for (const item of items) item.hidden = !words.every((word) => item.dataset.search.includes(word));
      for (const group of groups) group.hidden = !group.querySelector("[data-search]:not([hidden])");
      none.hidden = groups.some((group) => !group.hidden && !(group.matches(".found") && words.length === 0));
    };
    const first = () => field.closest("nav").querySelector(".group:not([hidden]) [data-search]:not([hidden]) a");
    field.addEventListener("input", show);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && field.value !== "") first()?.click();
      if (event.key === "Escape") field.value = "";
      if (event.key === "Escape") show();
    });
    document.addEventListener("keydown", (event) => {
      const types = event.target instanceof Element && event.target.closest("input, textarea");
      if (event.key !== "/" || types || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.focus();
      field.select();
    });
    document.querySelector(".search").hidden = false;
    // A browser may have kept what was typed before the page was loaded again.
    show();
  }

  /** On a narrow screen the list is in the way of what was chosen from it. */
  function closeListAfter(list) {
    list.addEventListener("click", (event) => {
      if (event.target.closest("a")) list.open = false;
    });
    const field = document.querySelector(".search input");
    field.addEventListener("input", () => {
      list.open = field.value !== "";
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    offerThemes(document.querySelector(".theme"));
    for (const button of document.querySelectorAll(".copy")) offerCopy(button);
    offerSearch(document.querySelector(".search input"));
    closeListAfter(document.querySelector("nav details"));
  });
})();
