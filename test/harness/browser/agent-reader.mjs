/**
 * The pages of an agent in the hub, in whose room every text is hostile: `node agent-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is
 * JSON: cookies of who is signed in, the room, the agent, and the path of a long file of its drive. What happens in the service is asked
 * for by a line, and has been done when a line comes back. Prints as its last line one JSON object with what was seen.
 */
import { createInterface } from "node:readline";
import { openBrowser } from "./browser.mjs";
import { pressControls } from "./press-controls.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, room, agent, longFile } = JSON.parse(told);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const happens = async (what) => {
  console.log(what);
  return JSON.parse((await lines.next()).value);
};
const { open, look, longestTask, noted, close } = await openBrowser(executablePath, url, pictures);
/** A guest may have an eighth of a core. */
const SLOW = { timeout: 240_000 };
const ROOM = `${url}/rooms/${room}`;
const AGENT = `${ROOM}/agents/${agent}`;
const seen = { asked: [], sent: [], dialogs: [], pressed: {}, unpressed: [], prompts: [], longest_ms: {}, took_ms: {} };

/** A page of who is signed in; what it asks that is not reading is noted, and what it says by WebSocket. */
const visitor = async () => {
  const page = await open({ reducedMotion: "reduce" });
  await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
  page.on("request", (request) => {
    if (request.method() !== "GET") seen.asked.push(`${request.method()} ${new URL(request.url()).pathname}`);
  });
  page.on("dialog", (dialog) => {
    seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => seen.sent.push(String(payload))));
  return page;
};
const page = await visitor();
const inMain = (text) => page.locator("main").getByText(text).first();
const drawn = (what, on = page) =>
  on
    .waitForFunction((what) => document.querySelector(".xterm-rows")?.textContent.includes(what), what, SLOW)
    .catch((error) => {
      throw new Error(`${what} is not drawn`, { cause: error });
    });
const loaded = () =>
  page.waitForFunction(
    () => document.querySelector("main h1") && !document.querySelector("main .loading"),
    undefined,
    SLOW,
  );

/** What there is to ask about this page, as it is copied. */
async function copyPrompts() {
  const copies = page.locator("section[aria-labelledby=ask-title] .ask button");
  for (let n = 0; n < (await copies.count()); n++) {
    await copies.nth(n).click();
    await copies.nth(n).getByText("Copied").waitFor(SLOW);
    seen.prompts.push(await page.evaluate(() => navigator.clipboard.readText()));
  }
}

/** Looked at as it is, and everything pressed. */
async function visit(name, path, ...texts) {
  const began = performance.now();
  await page.goto(path);
  for (const text of texts) await inMain(text).waitFor(SLOW);
  await loaded();
  await look(page, `agent-${name}`);
  await copyPrompts();
  const { pressed, unpressed } = await pressControls(page);
  seen.pressed[name] = pressed;
  seen.unpressed.push(...unpressed);
  seen.took_ms[name] = Math.round(performance.now() - began);
}

/** Whether it fits where there is the least room. */
async function fits(name) {
  await page.setViewportSize({ width: 320, height: 800 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) noted.overflows.push(`${name} 320: ${over}`);
  await page.screenshot({ path: `${pictures}/agent-${name}-320.png` });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** What else shows what its guest says. */
async function glance(name, path, ...texts) {
  await page.goto(path);
  for (const text of texts) await inMain(text).waitFor(SLOW);
  await loaded();
  await fits(name);
}

await happens("open a terminal");
await visit("overview", AGENT, "Environment", "alert(1)", "No running commands");
await happens("begin a command");
await visit("commands", `${AGENT}/commands?exec=live`, "following", "it has begun", "timed out", "SIGKILL");
await visit("texts", `${AGENT}/commands?exec=texts`, "complete", "It ended with exit code 3", "onerror=alert(2)");
await visit("terminal", `${AGENT}/terminal`, "watching");
await visit("network", `${AGENT}/network`, "not on its list");
await visit("usage", `${AGENT}/usage`);
await visit("record", `${AGENT}/record`, "env_keys", "Lifecycle events");
await visit("console", `${AGENT}/console`, "lines");
await visit("ports", `${ROOM}/ports`, "public", "with token");
await glance("file", `${ROOM}/drive?file=${encodeURIComponent(longFile)}`, "of which the first");
await glance("timeline", `${ROOM}/timeline?as=list`, "alert(1)");
await glance("messages", `${ROOM}/messages`, "alert(1)");
await glance("audit", `${url}/audit?room=${room}`);
await page.goto(AGENT);
await inMain("all prompts").click();
await page.locator("#smoke-test").waitFor({ ...SLOW, state: "attached" });
seen.prompts_page = await page.evaluate(() => ({
  room: document.querySelector("input[name=room]").value,
  agent: document.querySelector("input[name=agent]").value,
  texts: Object.fromEntries([...document.querySelectorAll("pre[id]")].map(({ id, textContent }) => [id, textContent])),
}));

// A command that runs prints a line that does not end.
await page.goto(`${AGENT}/commands?exec=live`);
await inMain("it has begun").waitFor(SLOW);
await inMain("following").waitFor(SLOW);
const output = page.locator(".lines");
seen.longest_ms.command = await longestTask(page, async () => {
  await happens("print a long line");
  await inMain("the line is over").waitFor(SLOW);
  for (const share of [0, 0.5, 1]) {
    await output.evaluate((box, share) => {
      box.scrollTop = box.scrollHeight * share;
      box.scrollLeft = box.scrollWidth * share;
    }, share);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  }
});
await fits("long-line");
await happens("end the command");
await inMain("It ended with exit code 0").waitFor(SLOW);

// A terminal is watched by several.
await page.goto(`${AGENT}/terminal`);
await drawn("here");
seen.title = await page.title();
seen.sent_by_watching = seen.sent.length;

// Another who watches sees who types; one whose laptop sleeps meanwhile goes on by itself.
const second = await visitor();
await second.goto(`${AGENT}/terminal`);
await second.getByText("not in use").waitFor(SLOW);
const sleeper = await visitor();
await sleeper.clock.install();
await sleeper.goto(`${AGENT}/terminal`);
await drawn("here", sleeper);
await sleeper.context().setOffline(true);
const ticket = await happens("make a ticket");
await page.getByText("Type here").click();
await page.getByLabel("The ticket").fill(ticket);
await page.getByRole("button", { name: "Type", exact: true }).click();
const head = (on) => on.locator(".output-head");
await head(page).getByText("you type").waitFor(SLOW);
await page.keyboard.type("echo typed-$((6 * 7))\n");
await Promise.all([drawn("typed-42"), drawn("typed-42", second)]);
await head(second).getByText("in use by").waitFor(SLOW);
seen.badge = await head(second).textContent();
await sleeper.clock.fastForward("01:00:00");
await head(sleeper)
  .getByText("reconnecting")
  .waitFor(SLOW)
  .catch(async (error) => {
    throw new Error(`the sleeper's page says: ${await sleeper.locator("body").textContent()}`, { cause: error });
  });
seen.asleep = await sleeper.locator(".xterm-rows").textContent();
await sleeper.context().setOffline(false);
await drawn("typed-42", sleeper);
await head(sleeper).getByText("watching").waitFor(SLOW);
await head(sleeper).getByText("in use by").waitFor(SLOW);
seen.awake = await sleeper.locator(".xterm-rows").textContent();
await sleeper.context().close();

// The key that made the ticket is revoked while its holder types.
await page.keyboard.type("echo first-$((40 + 2))\n");
await drawn("first-42");
const where = page.url();
await happens("revoke the key");
await inMain("The key that made the ticket was revoked").waitFor(SLOW);
const sentBefore = seen.sent.length;
await page.keyboard.type("g r echo too-late-$((40 + 2))\n");
await happens("type something else");
await drawn("something-else");
await head(second).getByText("not in use").waitFor(SLOW);
seen.revoked = {
  sent: seen.sent.length - sentBefore,
  drawn: await page.locator(".xterm-rows").textContent(),
  says_why: await inMain("The key that made the ticket was revoked").count(),
  has_ticket: (await page.getByLabel("The ticket").inputValue()) === ticket,
  is_there: page.url() === where,
  dialogs: await page.locator("dialog[open]").count(),
};
await look(page, "agent-terminal-revoked");
await second.context().close();

// A terminal prints a line that does not end.
seen.longest_ms.terminal = await longestTask(page, async () => {
  await happens("print a long line in the terminal");
  await drawn("the line is over");
});

await close();
process.stdin.destroy();
console.log(JSON.stringify({ ...seen, ...noted }));
