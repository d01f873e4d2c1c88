/**
 * A program that uses a sandbox's browser, as its user would: `node browser-caller.mjs TOLD`, where TOLD is what `roomd browser --json`
 * printed, and as `page` the URL of another sandbox's. Prints one JSON object with what it has seen.
 */
import { chromium } from "playwright-core";

const { cdp_url, headers, page: served } = JSON.parse(process.argv[2]);
const begun = performance.now();
const browser = await chromium.connectOverCDP(cdp_url, { headers });
const [context] = browser.contexts();
const pages = context.pages().map((page) => page.url());
const page = await context.newPage();
// Emulated, on a host at work, a page takes tens of seconds.
page.setDefaultTimeout(120_000);
const seen = { pages, drawn: await page.evaluate(() => crypto.getRandomValues(new Uint8Array(16)).join(" ")) };
await page.goto("data:text/html,<title>made</title><h1>here</h1>");
seen.title = await page.title();
seen.text = await page.evaluate(() => document.body.textContent);
await page.goto(served);
seen.served = (await page.evaluate(() => document.body.textContent)).trim();
seen.picture_bytes = (await page.screenshot()).byteLength;
await browser.close();
seen.took_ms = Math.round(performance.now() - begun);
console.log(JSON.stringify(seen));
