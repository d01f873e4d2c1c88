/**
 * Every page, as several people see it: `node pages-reader.mjs CHROMIUM URL PICTURES`, with `[{ name, cookies, paths }]` on standard
 * input. Each is looked at with all that it can open, gone through by the tab key, and seen again without script. Prints one JSON
 * object with what was seen; pictures go to PICTURES.
 */
import { text } from "node:stream/consumers";
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures] = process.argv.slice(2);
const people = JSON.parse(await text(process.stdin));
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = [];

const cookiesOf = (cookies) => Object.entries(cookies).map(([name, value]) => ({ name, value, url }));

/** What can be used, and whether the tab key comes to each. */
async function unreached(page) {
  const wanted = await page.evaluate(() => {
    const usable = document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary");
    const shown = [...usable].filter((each) => each.checkVisibility() && !each.disabled);
    shown.forEach((each, n) => {
      each.dataset.n = String(n);
    });
    document.activeElement?.blur();
    return shown.map((each) => each.outerHTML.slice(0, 100));
  });
  const reached = new Set();
  const isWhole = () => wanted.every((_, n) => reached.has(String(n)));
  // Parts that scroll, and the browser itself, are stops as well.
  for (let presses = 0; presses < 2 * wanted.length + 10 && !isWhole(); presses++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.dataset.n ?? ""));
  }
  return wanted.filter((_, n) => !reached.has(String(n)));
}

/** What somebody reads of it. */
const outline = (page) =>
  page.evaluate(() => ({
    path: location.pathname,
    language: document.documentElement.lang,
    title: document.title,
    headings: [...document.querySelectorAll("h1")].map((each) => each.textContent.trim()),
    // A passkey is nothing without script.
    forms: [...document.forms].filter((each) => each.querySelector("button:not([data-passkey])")?.checkVisibility())
      .length,
  }));

try {
  for (const { name, cookies, paths } of people) {
    const page = await open();
    const bare = await open({ javaScriptEnabled: false });
    for (const each of [page, bare]) await each.context().addCookies(cookiesOf(cookies));
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
        console.error(`policy: ${violatedDirective} ${blockedURI}`),
      );
    });
    for (const path of paths) {
      const answer = await page.goto(url + path);
      const with_script = await outline(page);
      for (const each of await page.locator("details > summary").all()) await each.click();
      await look(page, `${name}${path.replaceAll(/\W+/g, "-")}`);
      const not_reached = await unreached(page);
      await bare.goto(url + path);
      seen.push({ name, path, status: answer.status(), with_script, without_script: await outline(bare), not_reached });
    }
  }
} finally {
  await close();
}
console.log(JSON.stringify({ seen, ...noted }));
