/**
 * The timeline of a room in which much happens, in a real browser: `node load-reader.mjs CHROMIUM URL TOLD`, where TOLD is JSON: cookies of who
 * is signed in, the page's path, and for how many seconds it is watched. Prints one JSON object: long tasks, the heap at the beginning and
 * the end, and how many items were drawn last.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, told] = process.argv.slice(2);
const { cookies, path, seconds, scrolls = 0 } = JSON.parse(told);
const { open, close, noted } = await openBrowser(executablePath, url, "/nowhere");
const page = await open();
await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
await page.addInitScript(() => {
  globalThis.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) globalThis.longTasks.push(duration);
  }).observe({ entryTypes: ["longtask"] });
});
await page.goto(url + path);
await page.locator(".timeline .lane").first().waitFor({ timeout: 60_000 });
const session = await page.context().newCDPSession(page);
await session.send("HeapProfiler.enable");
const heap = async () => {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize;
};
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Until what was there at first is drawn, and all that may be kept has been kept once.
await rest(Math.min(30_000, (seconds * 1000) / 4));
const before = await heap();
await page.evaluate(() => {
  globalThis.longTasks.length = 0;
});
const strip = page.locator(".strip");
for (let n = 0; n < scrolls; n++) {
  await strip.press(n % 2 ? "ArrowRight" : "ArrowLeft");
  await rest(50);
}
await rest((seconds * 1000 * 3) / 4);
const tasks = await page.evaluate(() => globalThis.longTasks);
const drawn = await page.locator(".track button").count();
console.log(JSON.stringify({ tasks, before, after: await heap(), drawn, complaints: noted.complaints }));
await close();
