/**
 * Owns a real browser for readers of pages, run by Node because Playwright does not work within Bun: pages of it note what they
 * complain of, what they ask of others, what axe finds and what runs over the edge, in every look; and the keyboard's ways.
 */
import axe from "axe-core";
import { chromium } from "playwright-core";

const QUIET = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const LOOKS = [
  { name: "wide-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "wide-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "narrow-light", viewport: { width: 320, height: 800 }, colorScheme: "light" },
  { name: "narrow-dark", viewport: { width: 320, height: 800 }, colorScheme: "dark" },
];

/** A picture of a whole page takes as long as all else in a look: they are for people, in the directory that this names. */
const IS_PICTURED = process.env.ROOMD_TEST_PICTURES !== undefined;
/** Drawn by software, beside other work. */
const PATIENCE_MS = 90_000;
/** What a page is does not change with its colours: in the dark these alone are looked at again. */
const OF_COLOURS = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } };

/** `url` is the one origin that pages may ask. */
export async function openBrowser(executablePath, url, pictures) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...QUIET] });
  /** What was wrong, in words. */
  const noted = { complaints: [], violations: [], strangers: [], overflows: [] };

  async function open(options = {}) {
    const context = await browser.newContext({ viewport: LOOKS[0].viewport, ...options });
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() === "error")
        noted.complaints.push(`${page.url()}: ${message.text()} (${message.location().url})`);
    });
    page.on("pageerror", (error) => noted.complaints.push(`${page.url()}: ${error.message}`));
    page.on("request", (request) => {
      const asked = request.url();
      if (![url, `blob:${url}`, "data:"].some((own) => asked.startsWith(own))) noted.strangers.push(asked);
    });
    return page;
  }

  /** The page in every look, and what axe finds in it. */
  async function look(page, name) {
    for (const { name: look, viewport, colorScheme } of LOOKS) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      if (IS_PICTURED) await page.screenshot({ path: `${pictures}/${name}-${look}.png`, fullPage: true });
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (over > 0) noted.overflows.push(`${name} ${look}: ${over}`);
      if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
      const rules = colorScheme === "dark" ? OF_COLOURS : {};
      const found = await page.evaluate((rules) => globalThis.axe.run(document, rules), rules);
      for (const { id, nodes } of found.violations) {
        noted.violations.push(`${name} ${look}: ${id} ${nodes[0].html.slice(0, 120)}`);
      }
    }
    await page.setViewportSize(LOOKS[0].viewport);
    await page.emulateMedia({ colorScheme: "light" });
  }

  /** The processor time that the longest task of the page's main thread took during `work`, in milliseconds. */
  async function longestTask(page, work) {
    await browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline"] });
    await work();
    const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
    const main = new Set(
      traceEvents.flatMap(({ name, args, pid, tid }) =>
        name === "thread_name" && args.name === "CrRendererMain" ? [`${pid} ${tid}`] : [],
      ),
    );
    const tasks = traceEvents.filter(
      ({ name, pid, tid, tdur }) => /RunTask/.test(name) && main.has(`${pid} ${tid}`) && tdur !== undefined,
    );
    if (tasks.length === 0) throw new Error("no task was traced");
    return Math.round(Math.max(...tasks.map(({ tdur }) => tdur)) / 100) / 10;
  }

  return { open, look, longestTask, noted, close: () => browser.close() };
}

/** Gives the page's browser something that keeps passkeys, and says yes for its person. */
export async function keepPasskeys(page, transport = "internal") {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport,
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  };
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", { options });
  return { cdp, authenticatorId };
}

/** By the tab key, to what has this label or text, or leads to this path; then it is typed or pressed. */
export async function tabTo(page, label) {
  for (let presses = 0; presses < 60; presses++) {
    const at = await page.evaluate(() => {
      const here = document.activeElement;
      const [label, name, path] = [here?.labels?.[0], here?.getAttribute("aria-label"), here?.getAttribute("href")];
      return [label?.textContent, name, path, here?.textContent].filter(Boolean).map((text) => text.trim());
    });
    if (at.includes(label)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`no way by the tab key to ${label} on ${page.url()}`);
}
export async function type(page, label, text) {
  await tabTo(page, label);
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
}
export async function press(page, label) {
  await tabTo(page, label);
  const loaded = page.waitForNavigation({ timeout: 15_000 });
  await page.keyboard.press("Enter");
  await loaded;
}
