/** A browser: Chromium in a sandbox of template `browser`, driven from outside by Playwright over its DevTools URL. Runs on Node. */
import { writeFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { Sandbox } from "roomd-sdk";

const site = process.argv[2] ?? "https://example.com/";

await using sandbox = await Sandbox.create({ template: "browser", egress: [new URL(site).host] });
const { cdp_url, headers } = await sandbox.browser();
const browser = await chromium.connectOverCDP(cdp_url, { headers });
const page = await browser.newPage();
await page.goto(site, { timeout: 120_000 }); // tens of seconds where guests are emulated
console.log("title:", await page.title());
await writeFile("page.png", await page.screenshot());
console.log("picture: page.png");
await browser.close();
