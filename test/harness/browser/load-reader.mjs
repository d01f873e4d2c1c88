/**
 * The hub under load: `node load-reader.mjs CHROMIUM URL TOLD`, where TOLD is JSON: cookies of who is signed in, a room that has so many
 * `events`, and for how many `minutes` another, `busy`, is followed. Prints one JSON object with what was seen.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, told] = process.argv.slice(2);
const { cookies, room, events, minutes } = JSON.parse(told);
const { open, longestTask, noted, close } = await openBrowser(executablePath, url, "");
const page = await open({ reducedMotion: "reduce" });
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
const cdp = await page.context().newCDPSession(page);
const MIB = 1024 ** 2;
const SAMPLE_MS = 5000;
const SLOW = { timeout: 120_000 };

const drawn = () => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
const elements = (selector) => page.evaluate((selector) => document.querySelectorAll(selector).length, selector);

// The audit, from the newest record to the ten thousandth.
const scrolled = {};
await page.goto(`${url}/audit`);
await page.locator(".virtual tbody tr").first().waitFor(SLOW);
const count = () => page.evaluate(() => Number(document.querySelector(".virtual table").getAttribute("aria-rowcount")));
scrolled.longest_ms = await longestTask(page, async () => {
  while ((await count()) <= 10_000) {
    await page.evaluate(() => {
      const box = document.querySelector(".virtual");
      box.scrollTop += box.clientHeight;
    });
    await drawn();
  }
});
scrolled.records = await count();
scrolled.rows = await elements(".virtual tbody tr");

// The whole of a long timeline: all of it is asked for, a page after another.
const timeline = {};
await page.goto(`${url}/rooms/${room}/timeline?span=all`);
await page.locator(".lane").first().waitFor(SLOW);
const known = () => page.evaluate(() => Number(document.querySelector(".timeline").dataset.items));
timeline.longest_ms = await longestTask(page, async () => {
  while ((await known()) < events) await drawn();
  for (const key of ["+", "+", "-", "+", "+", "+", "-"]) {
    await page.keyboard.press(key);
    await drawn();
  }
});
timeline.items = await known();
timeline.elements = await elements("main *");

// A room in which 20,000 things happen a minute, as it goes along.
const live = { heap_mib: [], longest_ms: 0 };
await page.goto(`${url}/rooms/busy/timeline?span=5m`);
await page.locator(".lane").first().waitFor(SLOW);
await cdp.send("HeapProfiler.enable");
const heap = async () => {
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  return Math.round((usedSize / MIB) * 10) / 10;
};
const sample = async () => {
  const longest = await longestTask(page, () => new Promise((resolve) => setTimeout(resolve, SAMPLE_MS)));
  live.longest_ms = Math.max(live.longest_ms, longest);
  live.heap_mib.push(await heap());
};
const startedAt = performance.now();
for (let minute = 1; minute <= minutes; minute++) {
  await sample();
  await new Promise((resolve) => setTimeout(resolve, startedAt + minute * 60_000 - performance.now()));
}
// The newest that is drawn, and the newest that is.
live.behind_ms = await page.evaluate(async () => {
  const { items } = await (await fetch("/v1/rooms/busy/audit?limit=1", { credentials: "same-origin" })).json();
  const known = () => Number(document.querySelector(".timeline").dataset.newest);
  const askedAt = performance.now();
  while (known() < items[0].seq) await new Promise((resolve) => setTimeout(resolve, 50));
  return Math.round(performance.now() - askedAt);
});

await close();
console.log(JSON.stringify({ scrolled, timeline, live, ...noted }));
