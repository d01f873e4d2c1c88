/**
 * A reader of /docs: `node docs-reader.mjs CHROMIUM URL`, run by Node because Playwright does not work within Bun. Prints one JSON
 * object with what was seen in a narrow and a wide window, in light and dark, with scripts and without.
 */
import { chromium } from "playwright-core";

const [executablePath, url] = process.argv.slice(2);
const QUIET = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...QUIET] });
const complaints = [];

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  return page;
}

const linksOf = (page) =>
  page
    .locator("nav [data-search] a")
    .evaluateAll((links) => links.filter((a) => a.checkVisibility()).map((a) => a.hash));
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function search(page, text) {
  await page.locator("nav input").fill(text);
  return await linksOf(page);
}

const seen = {};
try {
  const wide = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  await wide.keyboard.press("/");
  seen.focused = await wide.evaluate(() => document.activeElement?.matches("nav input") === true);
  seen.all = await linksOf(wide);
  seen.command = await search(wide, "run command");
  seen.field = await search(wide, "if_revision");
  seen.error = await search(wide, "guest_cid_in_use");
  seen.nothing = await search(wide, "no such thing");
  seen.says_nothing = await wide.locator(".none").isVisible();
  await search(wide, "sandbox_exec");
  await wide.keyboard.press("Enter");
  seen.hash = await wide.evaluate(() => location.hash);
  await wide.locator("nav input").focus();
  await wide.keyboard.press("Escape");
  seen.after_escape = (await linksOf(wide)).length;

  const example = wide.locator("#room_create .example").first();
  seen.example = await example.locator("pre").textContent();
  await example.locator(".copy").click();
  await example.getByText("copied", { exact: true }).waitFor();
  // Pasted, since a page may not read the clipboard.
  await wide.locator("nav input").evaluate((input) => {
    const area = document.createElement("textarea");
    input.replaceWith(area);
    area.focus();
  });
  await wide.keyboard.press("Control+V");
  seen.pasted = await wide.locator("nav textarea").inputValue();

  seen.light = await background(wide);
  const theme = wide.locator(".theme");
  for (let each = 0; each < 2; each++) await theme.click();
  seen.chosen_dark = await background(wide);
  await wide.reload();
  seen.still_dark = await background(wide);

  const narrow = await open({ viewport: { width: 320, height: 800 }, colorScheme: "dark" });
  seen.dark = await background(narrow);
  seen.overflow = await overflow(narrow);
  seen.closed = (await linksOf(narrow)).length;
  seen.narrow = await search(narrow, "sandbox_exec");
  await narrow.locator("nav a:visible").getByText("Run a command").first().click();
  seen.narrow_hash = await narrow.evaluate(() => location.hash);
  seen.closed_again = (await linksOf(narrow)).length;

  // As on an address that browsers do not trust.
  await narrow.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await narrow.locator("#room_create .copy").first().click();
  await narrow.getByText("copied", { exact: true }).waitFor();
  seen.left_behind = await narrow.locator("textarea").count();

  const still = await open({ viewport: { width: 1280, height: 900 }, javaScriptEnabled: false });
  seen.without_script = {
    heading: await still.locator("#sandbox_exec h3").isVisible(),
    listed: await still.locator("nav a[href='#sandbox_exec']").isVisible(),
    controls: await still.locator("button:visible, input:visible").count(),
  };
} finally {
  await browser.close();
}
console.log(JSON.stringify({ ...seen, complaints }));
