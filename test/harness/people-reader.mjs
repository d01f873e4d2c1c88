/**
 * Two people in real browsers: `node people-reader.mjs CHROMIUM URL SETUP-LINK PICTURES`, run by Node because Playwright does not work
 * within Bun. The first comes in by the setup link, by keyboard alone, makes a key and invites the second, whose browser runs no
 * scripts. Prints one JSON object with what was seen; pictures of every page, wide and narrow, light and dark, go to PICTURES.
 */

import axe from "axe-core";
import { chromium } from "playwright-core";

const [executablePath, url, setupLink, pictures] = process.argv.slice(2);
const QUIET = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...QUIET] });
const complaints = [];
const violations = [];
const strangers = [];
const LOOKS = [
  { name: "wide-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "wide-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "narrow-light", viewport: { width: 320, height: 800 }, colorScheme: "light" },
  { name: "narrow-dark", viewport: { width: 320, height: 800 }, colorScheme: "dark" },
];
const overflows = [];

async function open(options = {}) {
  const context = await browser.newContext({ viewport: LOOKS[0].viewport, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && complaints.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) strangers.push(request.url());
  });
  return page;
}

/** The page in every look, and what axe finds in it. */
async function look(page, name) {
  for (const { name: look, viewport, colorScheme } of LOOKS) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${pictures}/${name}-${look}.png`, fullPage: true });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) overflows.push(`${name} ${look}: ${over}`);
    if (look.startsWith("wide")) {
      await page.evaluate(axe.source);
      const found = await page.evaluate(() => globalThis.axe.run(document));
      for (const { id, nodes } of found.violations)
        violations.push(`${name} ${look}: ${id} ${nodes[0].html.slice(0, 120)}`);
    }
  }
  await page.setViewportSize(LOOKS[0].viewport);
  await page.emulateMedia({ colorScheme: "light" });
}

/** By the tab key, to what has this label or text; then it is typed or pressed. */
async function tabTo(page, label) {
  for (let presses = 0; presses < 60; presses++) {
    const at = await page.evaluate(() => {
      const here = document.activeElement;
      return [here?.labels?.[0]?.textContent, here?.getAttribute("aria-label"), here?.textContent]
        .filter(Boolean)
        .map((text) => text.trim());
    });
    if (at.includes(label)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`no way by the tab key to ${label} on ${page.url()}`);
}
async function type(page, label, text) {
  await tabTo(page, label);
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
}
async function press(page, label) {
  await tabTo(page, label);
  const loaded = page.waitForNavigation({ timeout: 15_000 });
  await page.keyboard.press("Enter");
  await loaded;
}

const seen = {};
try {
  const ada = await open();
  await ada.goto(setupLink);
  await ada.getByRole("heading", { name: "Set up roomd" }).waitFor();
  seen.address = ada.url();
  await look(ada, "setup");
  await type(ada, "Your name", "Ada");
  await type(ada, "E-mail", "ada@example.org");
  await type(ada, "Password", "seven green umbrellas");
  await press(ada, "Set up");
  seen.account = ada.url();
  await look(ada, "account");

  await press(ada, "API keys");
  await look(ada, "keys-none");
  await type(ada, "Name", "laptop");
  await press(ada, "Make key");
  seen.exports = await ada.locator("#exports").textContent();
  await look(ada, "keys-made");
  await tabTo(ada, "Copy both lines");
  await ada.keyboard.press("Enter");
  await ada.getByText("Copied.", { exact: true }).waitFor();
  seen.copied = await ada.evaluate(() => navigator.clipboard.readText());

  await press(ada, "Members");
  await press(ada, "Make a link");
  const link = await ada.locator("#link").textContent();
  await look(ada, "members");

  const invited = await open();
  await invited.goto(link);
  await look(invited, "invite");

  const bob = await open({ javaScriptEnabled: false });
  await bob.goto(link);
  await type(bob, "Your name", "Bob");
  await type(bob, "E-mail", "bob@example.org");
  await type(bob, "Password", "another long secret").catch(() => {});
  await bob.locator("button").click();
  seen.bob = bob.url();
  await bob.goto(`${url}/account/keys`);
  await bob.locator("input[name=name]").fill("bob's");
  await bob.getByRole("button", { name: "Make key" }).click();
  seen.bobs_key = await bob.locator("#exports").textContent();
  seen.without_script = await bob.locator("button[data-copy]:visible").count();
  await bob.getByRole("button", { name: "Sign out" }).click();
  seen.signed_out = bob.url();
  await bob.goto(`${url}/account`);
  seen.outside = bob.url();

  await ada.goto(`${url}/org/members`);
  await look(ada, "members-two");
  await ada.goto(`${url}/account/sessions`);
  await look(ada, "sessions");
  await ada.goto(`${url}/account/keys`);
  await look(ada, "keys");

  const nobody = await open();
  await nobody.goto(`${url}/signin`);
  await look(nobody, "signin");
  await type(nobody, "E-mail", "ada@example.org");
  await type(nobody, "Password", "wrong");
  await press(nobody, "Sign in");
  seen.refused = await nobody.getByRole("alert").textContent();
  await look(nobody, "signin-refused");
} finally {
  await browser.close();
}
console.log(JSON.stringify({ ...seen, complaints, violations, strangers, overflows }));
