/**
 * The hub while things change around it, in a real browser: `node hub-changes-reader.mjs CHROMIUM URL PICTURES TOLD`, where TOLD is JSON:
 * cookies of who is signed in, and a key. What needs a sandbox is answered in the service's place with the examples of its own document,
 * so that what changes, and when, is known. Prints one JSON object with what was seen.
 */
import { openBrowser } from "./browser.mjs";

const [executablePath, url, pictures, told] = process.argv.slice(2);
const { cookies, key } = JSON.parse(told);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = { asked: [] };
const ROOM = "changes";
/** More than a page of the timeline. */
const MANY = 1100;
const LANES = 16;
/** Drawn by software, beside other work. */
const PATIENCE_MS = 90_000;
/** Messages of a thread, many of them below what is in view. */
const LONG = 60;

const api = async (method, path, body, more = {}) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", ...more };
  const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
};
const opened = async (path, { hasClock = false, ...context } = {}) => {
  const page = await open({ reducedMotion: "reduce", ...context });
  await page.context().addCookies(cookies.map(([name, value]) => ({ name, value, url })));
  page.on("request", (request) => {
    if (request.method() !== "GET") seen.asked.push(request.url());
  });
  if (hasClock) await page.clock.install();
  return { page, go: () => go(page, path) };
};
async function go(page, path) {
  await page.goto(url + path);
  await page.locator(".state.live").waitFor();
}
const until = async (what, is) => {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`in ${PATIENCE_MS} ms it was not so that ${what}`);
};
const hide = (page, isHidden) =>
  page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

await api("POST", "/v1/rooms", { room_id: ROOM });
const { paths } = await api("GET", "/v1/openapi.json");
const exampleOf = (path) => paths[path].get.responses["200"].content["application/json"].example;
const SANDBOX = { ...exampleOf("/v1/rooms/{room_id}/sandboxes/{sandbox}"), room_id: ROOM, agent_id: "worker" };
const EXECUTION = exampleOf("/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}");

// A page whose program the service no longer has, in a room and of an agent.
{
  const { page, go } = await opened(`/rooms/${ROOM}`);
  await go();
  await page.getByRole("link", { name: "Waits", exact: true }).waitFor();
  await page.route("**/ui/part-*", (route) => route.fulfill({ status: 404, body: "" }));
  await page.getByRole("link", { name: "Waits", exact: true }).click();
  await page.getByText("could not be loaded").waitFor();
  await look(page, "hub-lost");
  await page.unroute("**/ui/part-*");
  await page.getByRole("link", { name: "Reload the page" }).click();
  await page.getByText("could not be loaded").waitFor({ state: "detached" });
  await page.waitForURL(`${url}/rooms/${ROOM}/waits`);
  await page.locator("main h1").waitFor();
  seen.lost_and_found = await page.locator(".tabs [aria-current=page]").textContent();
  await page.context().close();
}

// How far behind: what comes is old, then nothing comes although it should, then the connection is cut.
{
  const { page, go } = await opened("/rooms", { hasClock: true });
  await go();
  const isBehind = (text) => page.locator("header .state").getByText(text).waitFor();
  await page.clock.fastForward(6000);
  await api("POST", "/v1/rooms", { room_id: "late" });
  await isBehind(/^\d+ s behind$/);
  seen.late_look = await page.locator("header .state").getAttribute("class");
  await page.locator(".state.live").waitFor();
  await page.clock.fastForward(20_000);
  await isBehind(/^\d\d s behind$/);
  await page.context().setOffline(true);
  await page.clock.fastForward(25_000);
  await isBehind(/^reconnecting, \d\d s behind$/);
  await page.context().setOffline(false);
  await page.clock.fastForward(15_000);
  await page.locator(".state.live").waitFor();
  await page.context().close();
}

// What a command prints while one has scrolled up is counted.
{
  const { page } = await opened("");
  const { exec_id } = EXECUTION;
  const place = `**/v1/rooms/${ROOM}/sandboxes`;
  // Without WebSockets each stream is a request, which can be answered here.
  await page.addInitScript(() => Reflect.deleteProperty(window, "WebSocket"));
  let given = 0;
  let isOpen = false;
  const line = (seq) =>
    JSON.stringify({ type: "stdout", seq, data_b64: Buffer.from(`line ${seq}\n`).toString("base64") });
  const more = (count) => {
    const text = Array.from({ length: count }, (_, n) => `${line(given + n + 1)}\n`).join("");
    given += count;
    return text;
  };
  const running = { ...EXECUTION, state: "running", exit_code: null, finished_at: null, duration_ms: null };
  await page.route(`${place}/worker`, (route) => route.fulfill({ json: SANDBOX }));
  await page.route(`${place}/*/executions?*`, (route) =>
    route.fulfill({ json: { items: [running], next_cursor: null } }),
  );
  // Each answer is cut off, so that the page asks for what follows.
  await page.route(`${place}/*/executions/${exec_id}/stream*`, async (route) => {
    const body = given === 0 ? more(200) : isOpen ? more(28) : "";
    isOpen = false;
    await route.fulfill({ contentType: "application/x-ndjson", body });
  });
  await page.goto(`${url}/rooms/${ROOM}/agents/worker/commands?exec=${exec_id}`);
  const lines = page.locator(".lines");
  await lines.getByText("line 200", { exact: true }).waitFor();
  await lines.evaluate((box) => box.scrollTo({ top: 0 }));
  await page.getByRole("button", { name: "Continue at the end" }).waitFor();
  isOpen = true;
  await page.getByRole("button", { name: "Continue: 28 new" }).waitFor();
  await look(page, "hub-paused");
  await page.getByRole("button", { name: /^Continue: \d+ new$/ }).click();
  await lines.getByText("line 228", { exact: true }).waitFor();
  seen.paused_buttons = await page.locator(".lines-end").count();
  await page.context().close();
}

// A port's traffic is up to date while one looks, and is not asked for by a tab that is hidden.
{
  const { page, go } = await opened(`/rooms/${ROOM}/ports`, { hasClock: true });
  let asked = 0;
  await page.route(`**/v1/rooms/${ROOM}/sandboxes?*`, (route) => {
    asked++;
    const ports = SANDBOX.ports.map((port) => ({ ...port, traffic: { ...port.traffic, connections: 1000 + asked } }));
    return route.fulfill({ json: { items: [{ ...SANDBOX, ports }], next_cursor: null } });
  });
  await go();
  await page.getByText("1,001").waitFor();
  await page.clock.fastForward(31_000);
  await page.getByText("1,002").waitFor();
  await page.clock.fastForward(6000);
  await page.getByText("1,003").waitFor();
  await look(page, "hub-ports-used");
  await hide(page, true);
  const before = asked;
  await page.clock.fastForward(60_000);
  await new Promise((resolve) => setTimeout(resolve, 500));
  seen.ports_asked_while_hidden = asked - before;
  await hide(page, false);
  await page.waitForFunction(
    (least) => [...document.querySelectorAll("td")].some((cell) => cell.textContent?.startsWith(least)),
    (1001 + before).toLocaleString("en"),
  );
  await page.context().close();
}

// Who waits leaves no record before the end: that somebody does is seen while one looks, wherever waits are shown.
{
  await api("POST", "/v1/rooms", { room_id: "waiting" });
  await api("POST", "/v1/rooms/waiting/messages", { source: "planner", topic: "steps", payload: "here" });
  const shown = {
    "/waits": 'td[data-label="Waits for"] .state',
    "": 'td[data-label="Waits for"] .state',
    "/agents/planner": ".waits .state.wait",
    "/timeline?span=all": ".timeline .span.open",
  };
  const tabs = [];
  for (const [path, held] of Object.entries(shown)) {
    const { page, go } = await opened(`/rooms/waiting${path}`);
    await go();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    tabs.push({ page, held: page.locator(held) });
  }
  const unheld = await Promise.all(tabs.map(({ held }) => held.count()));
  const call = api("GET", "/v1/rooms/waiting/messages?agent_id=planner&wait_ms=50000");
  await Promise.all(tabs.map(({ held }) => held.waitFor()));
  for (const { page } of tabs) await hide(page, true);
  // What was about to be asked still is.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const asked = [];
  for (const { page } of tabs) page.on("request", (request) => asked.push(request.url()));
  await new Promise((resolve) => setTimeout(resolve, 6000));
  seen.waits = { unheld, asked_while_hidden: asked.length };
  for (const { page } of tabs) await hide(page, false);
  await api("POST", "/v1/rooms/waiting/messages", { source: "worker", destination: "planner", payload: "go on" });
  await call;
  await Promise.all(tabs.map(({ held }) => held.waitFor({ state: "detached" })));
  for (const { page } of tabs) await page.context().close();
}

// What others only read makes nothing old. How many sandboxes there are is told by their events.
{
  const tabs = {};
  for (const [name, path] of Object.entries({ room: "/rooms/waiting", drive: "/rooms/waiting/drive", home: "/" })) {
    const { page, go } = await opened(path);
    tabs[name] = { page, asked: [] };
    page.on("request", (request) => tabs[name].asked.push(new URL(request.url())));
    // That a sandbox has run is known of one that there is.
    await page.route("**/v1/rooms?limit=1", async (route) => {
      const { items } = await api("GET", "/v1/rooms?limit=1");
      await route.fulfill({ json: { items: items.map((item) => ({ ...item, sandbox_count: 1 })), next_cursor: null } });
    });
    await go();
    await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main .loading"));
    if (name === "home") {
      await page.getByRole("button", { name: "Skip setup" }).click();
      await page.getByRole("heading", { name: "Recent failures" }).waitFor();
      await page.waitForLoadState("networkidle");
    }
  }
  const before = Object.fromEntries(Object.entries(tabs).map(([name, { asked }]) => [name, asked.length]));
  for (let n = 0; n < 20; n++) {
    await api("GET", "/v1/rooms/waiting/sandboxes");
    await api("GET", "/v1/rooms/waiting/drive/list");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const count = (name, path) => tabs[name].asked.slice(before[name]).filter((url) => url.pathname === path).length;
  seen.read_by_others = {
    agents: count("room", "/v1/rooms/waiting/agents"),
    drive: count("drive", "/v1/rooms/waiting/drive/list"),
    home: count("home", "/v1/orgs/self/audit"),
    sandboxes: tabs.room.asked.filter(({ pathname }) => pathname.endsWith("/sandboxes")).length,
  };
  for (const { page } of Object.values(tabs)) await page.context().close();
}

// A room that has ended is read from the audit, and another has its name by now. One of them ends while its waits are looked at.
{
  const say = (payload) => api("POST", "/v1/rooms/twice/messages", { source: "planner", topic: "steps", payload });
  await api("POST", "/v1/rooms", { room_id: "twice", labels: { life: "first" } });
  await say("here");
  await api("DELETE", "/v1/rooms/twice");
  await api("POST", "/v1/rooms", { room_id: "twice", labels: { life: "second" } });
  const { page, go } = await opened("/rooms?state=destroyed");
  await go();
  await page.getByRole("link", { name: "twice", exact: true }).click();
  const events = page.locator('td[data-label="What"] > code');
  await events.first().waitFor();
  seen.ended = {
    heading: await page.locator("main h1").textContent(),
    labels: await page.locator("header .label").allTextContents(),
    events: await events.allTextContents(),
    lines: await page.locator("main .ask").count(),
  };
  await look(page, "hub-ended");
  await page.getByRole("link", { name: "Timeline", exact: true }).first().click();
  seen.ended.items = await page.locator(".timeline").getAttribute("data-items");
  await page.getByLabel(/^Jump to a time/).waitFor();
  seen.ended.pauses = await page.getByRole("button", { name: "Pause", exact: true }).count();
  await look(page, "hub-ended-timeline");
  await page.getByLabel(/^Jump to a time/).fill("2026-01-02T03:04:05");
  await page.getByRole("button", { name: "To the end", exact: true }).click();
  await page.waitForURL((at) => !at.search.includes("at="));
  await page.getByRole("link", { name: "Waits", exact: true }).click();
  await page.getByText("This room has ended: no agent waits any more.").waitFor();
  seen.ended.troubles = await page.locator(".trouble").count();
  // Records lead to their own room, whatever has its name by now.
  seen.led = [];
  for (const life of ["last", "first"]) {
    await page.goto(`${url}/audit?room=twice&event=room.created`);
    await page.locator("td.room a")[life]().click();
    await page.locator("header .label").waitFor();
    seen.led.push(await page.locator("header .label").textContent(), new URL(page.url()).search);
  }
  await page.goto(`${url}/rooms/twice/waits`);
  await page.getByText("No agent is waiting.").waitFor();
  await api("DELETE", "/v1/rooms/twice");
  await page.getByText("This room has ended: no agent waits any more.").waitFor();
  await page.context().close();
}

// More rooms than the page shows at first: one of the others is found, and who comes back finds the page as it was left.
{
  const names = Array.from({ length: 130 }, (_, n) => `many-${n}`);
  await Promise.all(names.map((room_id) => api("POST", "/v1/rooms", { room_id })));
  const { page, go } = await opened("/rooms", { hasClock: true });
  const rows = page.locator("table.rooms tbody tr");
  await go();
  await rows.first().waitFor();
  seen.rooms = { at_first: await rows.count() };
  const isShown = (room) => page.getByRole("link", { name: room, exact: true });
  const [hidden] = await Promise.all(names.map(async (room) => ((await isShown(room).count()) === 0 ? room : []))).then(
    (found) => found.flat(),
  );
  await page.getByRole("searchbox").fill(hidden);
  await isShown(hidden).click();
  await page.locator(".tabs").waitFor();
  await page.goBack();
  await isShown(hidden).waitFor();
  seen.rooms.searched = (await page.getByRole("searchbox").inputValue()) === hidden;
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "Show more" }).click();
  await isShown(hidden).waitFor();
  seen.rooms.at_last = await rows.count();
  const scrolled = await page.evaluate(() => {
    scrollTo(0, 2500);
    return scrollY;
  });
  await rows.last().getByRole("link").first().focus();
  await page.evaluate((px) => scrollTo(0, px), scrolled);
  await page.keyboard.press("Enter");
  await page.locator(".tabs").waitFor();
  await page.goBack();
  await rows.last().waitFor();
  seen.rooms.scrolled_px = (await page.evaluate(() => scrollY)) - scrolled;
  seen.rooms.back = await rows.count();
  // Who begins to wait leaves no record.
  await page.route("**/v1/overview/rooms?*", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    const answer = await api("GET", pathname + search);
    await route.fulfill({ json: { ...answer, items: answer.items.map((item) => ({ ...item, blocked: 7 })) } });
  });
  await page.clock.fastForward(12_000);
  await page.locator("table.rooms .state.wait").first().waitFor();
  await page.context().close();
}

// The chain is verified as the page is opened; what breaks it is named; a long one is as it was when it was last verified.
{
  const { page, go } = await opened("/audit");
  const state = () => page.locator(".chain-line .state");
  await go();
  await state()
    .getByText(/^chain verified, [\d,]+ records$/)
    .waitFor();
  seen.chain_at = await page.locator(".chain-line time").count();
  let verified = 0;
  await page.route("**/v1/orgs/self/audit/verify", (route) => {
    verified++;
    return route.fulfill({ json: { ok: false, from_seq: 1, to_seq: 40, broken_at: 7 } });
  });
  await page.reload();
  await state().getByText("chain broken at record 7").waitFor();
  await page.getByRole("alert").getByText("Record 7 was changed or removed").waitFor();
  await look(page, "hub-chain-broken");
  await page.route("**/v1/orgs/self/audit?limit=1", async (route) => {
    const newest = await api("GET", "/v1/orgs/self/audit?limit=1");
    await route.fulfill({ json: { ...newest, items: newest.items.map((item) => ({ ...item, seq: 1_000_000 })) } });
  });
  await page.reload();
  await page.getByRole("button", { name: "Verify again", disabled: false }).waitFor();
  await state().getByText("chain broken at record 7").waitFor();
  seen.verified = verified;
  await page.context().close();
}

// The audit by keyboard: what is typed takes no filter away, what is taken away leaves the focus near, rows open, and nothing is
// reached beneath an open record.
{
  const { page, go } = await opened(`/audit?room=${ROOM}&outcome=success`);
  const chips = page.locator(".chip");
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await go();
  await chips.first().waitFor();
  await page.getByLabel("Filter by").selectOption("since");
  await page.getByLabel(/^Value of since/).focus();
  await page.keyboard.type("1128");
  await page.keyboard.press("Backspace");
  await page.getByLabel("Filter by").selectOption("event");
  await page.getByLabel("Value of event").focus();
  await page.keyboard.type("ab");
  for (let n = 0; n < 5; n++) await page.keyboard.down("Backspace");
  await page.keyboard.up("Backspace");
  seen.keyboard = { chips: await chips.count() };
  await chips.first().focus();
  await page.keyboard.press("Enter");
  await until("one is left", async () => (await chips.count()) === 1);
  seen.keyboard.after_one = await focused();
  await page.keyboard.press("Enter");
  await until("none is left", async () => (await chips.count()) === 0);
  seen.keyboard.after_all = await focused();
  await page.setViewportSize({ width: 900, height: 800 });
  await page.locator(".virtual tbody a").first().click();
  await page.getByRole("button", { name: "Close" }).waitFor();
  const reached = new Set();
  for (let n = 0; n < 40; n++) {
    await page.keyboard.press("Tab");
    reached.add(
      await page.evaluate(() => {
        const here = document.activeElement;
        return here === document.body || here?.closest(".record") ? "" : here?.outerHTML.slice(0, 80);
      }),
    );
  }
  seen.keyboard.beneath = [...reached].filter(Boolean);
  await look(page, "hub-audit-open");
  await page.keyboard.press("Escape");
  await page.locator(".record").waitFor({ state: "detached" });
  seen.keyboard.after_record = await page.evaluate(() => document.activeElement?.id.startsWith("row-"));
  await page.goto(`${url}/rooms/${ROOM}`);
  await page.locator("table a[href*=audit_id]").first().waitFor();
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.waitForURL(/audit\?audit_id=/);
  await page.context().close();
}

// The place of a screen: no sandbox, one without, one with it.
{
  // An agent of the room, if without a sandbox.
  await api("POST", `/v1/rooms/${ROOM}/messages`, { source: "worker", topic: "steps", payload: "here" });
  const { page, go } = await opened(`/rooms/${ROOM}/agents/worker/screen`);
  let template = "default";
  const line = page.getByText(`roomd sandbox create ${ROOM} worker --template desktop`, { exact: true });
  await go();
  await page.getByText("There is no sandbox with a screen.").waitFor();
  await line.waitFor();
  await page.route(`**/v1/rooms/${ROOM}/sandboxes/worker`, (route) =>
    route.fulfill({ json: { ...SANDBOX, template_id: template } }),
  );
  await go();
  await page.getByText("This sandbox has no screen.").waitFor();
  await line.waitFor();
  await look(page, "hub-screen-none");
  // A picture of the page itself stands for that of a screen.
  const picture = await page.screenshot();
  let asked = 0;
  await page.route(`**/v1/rooms/${ROOM}/sandboxes/*/screen`, (route) => {
    asked++;
    return route.fulfill({ contentType: "image/png", body: picture });
  });
  template = "desktop";
  await go();
  const image = page.getByAltText("Screen contents");
  await image.waitFor();
  await until("it is drawn", () => image.evaluate(({ naturalWidth }) => naturalWidth > 0));
  const first = await image.getAttribute("src");
  await until("it is taken again", async () => asked > 1 && (await image.getAttribute("src")) !== first);
  await look(page, "hub-screen");
  seen.screen_lines = await line.count();
  await page.context().close();
}

// Messages that are refused for a moment come by themselves, and until then nothing is said of how many there are.
{
  await api("POST", "/v1/rooms", { room_id: "mail" });
  await api("POST", "/v1/rooms/mail/messages", { source: "planner", topic: "steps", payload: "the first" });
  const { page, go } = await opened("/rooms/mail/messages");
  const problem = { status: 503, code: "overloaded", detail: "Too much is asked.", retryable: true, errors: [] };
  let refused = 0;
  await page.route("**/v1/rooms/mail/messages?*", (route) =>
    refused++ === 0 ? route.fulfill({ status: 503, json: problem }) : route.continue(),
  );
  await go();
  await page.getByText("Too much is asked.").waitFor();
  seen.refused_mail = {
    empty: await page.getByText("No messages yet.").count(),
    buttons: await page.getByRole("button", { name: "Retry" }).count(),
  };
  await page.getByText("the first", { exact: true }).waitFor();
  await page.context().close();
}

// The link of a message leads to it, however old it is; one that is gone, and a barrier that all have passed, are said to be.
{
  const room = "/v1/rooms/letters";
  const request = { source: "planner", destination: "planner", kind: "event", payload: "an old question" };
  const later = Array.from({ length: 200 }, (_, n) => ({ source: "planner", topic: "steps", payload: { n } }));
  await api("POST", "/v1/rooms", { room_id: "letters" });
  await api("POST", `${room}/messages`, { ...request, message_id: "old-one" });
  for (let n = 0; n < 2; n++) await api("POST", `${room}/messages/batch`, { messages: later });
  const { page, go } = await opened("/rooms/letters/messages?message=old-one");
  await go();
  const old = page.locator("#message-old-one");
  await old.getByText("an old question", { exact: true }).waitFor();
  const isInView = () =>
    old.evaluate((at) => at.getBoundingClientRect().top >= 0 && at.getBoundingClientRect().bottom <= innerHeight);
  await until("the message is in view", isInView);
  seen.old_message = await page.locator(".thread").first().getAttribute("aria-expanded");
  await page.goto(`${url}/rooms/mail/messages?message=never-was`);
  await page.getByText("The message never-was is no longer kept.").waitFor();
  await look(page, "hub-message-gone");
  await page.goto(`${url}/rooms/letters/waits?barrier=built`);
  await page.getByText("No agent waits at the barrier built.").waitFor();
  await look(page, "hub-barrier-gone");
  seen.gone_links = await page.locator(".warning a").getAttribute("href");
  await page.context().close();
}

// A long thread asks for the receipts of what is in view, and what others send makes none of them old.
{
  const letters = "/v1/rooms/mail/messages";
  const one = { source: "planner", destination: "planner", message_id: "asked", payload: "a question" };
  await api("POST", letters, one);
  for (let n = 1; n <= LONG; n++) await api("POST", `${letters}/asked/reply`, { source: "planner", payload: n });
  const { page, go } = await opened("/rooms/mail/messages?message=asked");
  const asked = { first: 0, again: 0, seen: 0 };
  let when = "first";
  page.on("request", (request) => {
    if (/\/messages\/[^/]+$/.test(request.url())) asked[when]++;
  });
  await go();
  await page.locator("#message-asked .receipts .state").waitFor();
  await until("the thread is there", async () => (await page.locator(".message").count()) === LONG + 1);
  const shown = () => page.locator(".message .receipts .state").count();
  await until("all that was asked for is there", async () => (await shown()) === asked.first);
  when = "again";
  for (let n = 0; n < 3; n++) {
    await api("POST", letters, { source: "planner", topic: "steps", payload: `news ${n}` });
    await page.getByText(`news ${n}`, { exact: true }).waitFor();
  }
  when = "seen";
  await page.locator(".message").last().scrollIntoViewIfNeeded();
  await page.locator(".message").last().locator(".receipts .state").waitFor();
  seen.receipts = asked;
  await page.context().close();
}

// What a drive takes is up to date after a write, and where one asks again.
{
  const { page, go } = await opened("/rooms/mail/drive");
  const used = (least) => async () => Number(await page.locator("meter").getAttribute("value")) >= least;
  await go();
  await page.getByText("This directory is empty.").waitFor();
  await api("POST", "/v1/rooms/mail/drive/write", { path: "/data.txt", content: "x".repeat(900_000) });
  await page.getByRole("link", { name: "data.txt" }).waitFor();
  await until("what is used has grown", used(900_000));
  const told = await api("GET", "/v1/rooms/mail");
  await page.route("**/v1/rooms/mail", (route) =>
    route.fulfill({ json: { ...told, drive: { ...told.drive, used_bytes: 5_000_000_000 } } }),
  );
  await page.getByRole("button", { name: "Refresh" }).click();
  await until("what is used was asked for again", used(5_000_000_000));
  seen.drive_used = await page.locator(".crumbs .muted").textContent();
  await page.context().close();
}

// What is pointed at in the timeline leads to its trace.
{
  await api("POST", "/v1/rooms", { room_id: "traced" });
  const message = { source: "planner", destination: "planner", payload: "count the files" };
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await api("POST", "/v1/rooms/traced/messages", message, { traceparent });
  const { page, go } = await opened("/rooms/traced/timeline?span=all");
  // What is refused for now is asked for again by itself.
  const place = "**/v1/rooms/traced/timeline?*";
  const busy = { status: 503, code: "overloaded", title: "Busy", detail: "It is busy.", retryable: true, errors: [] };
  await page.route(place, (route) => route.fulfill({ status: 503, json: busy }), { times: 1 });
  await go();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  await page.locator('.timeline button[title*="to planner"]').click();
  const link = page.getByRole("link", { name: /^trace / });
  await link.waitFor();
  seen.trace = {
    words: await link.textContent(),
    href: await link.getAttribute("href"),
    rel: await link.getAttribute("rel"),
  };
  await look(page, "hub-trace");
  await page.context().close();
}

// A drag along the timeline's strip is seen with every step, and is in the address once it is over: browsers refuse more.
{
  const { page, go } = await opened("/rooms/traced/timeline?span=1m", { timezoneId: "Pacific/Auckland" });
  await go();
  const { x, y, width } = await page.locator(".strip").boundingBox();
  await page.evaluate(() => {
    globalThis.written = 0;
    const write = history.replaceState.bind(history);
    history.replaceState = (...all) => {
      globalThis.written++;
      write(...all);
    };
  });
  await page.mouse.move(x + width * 0.4, y + 10);
  await page.mouse.down();
  await page.getByRole("button", { name: "Continue", exact: true }).waitFor();
  await page.mouse.move(x + width * 0.1, y - 200, { steps: 30 });
  await page.mouse.up();
  await page.waitForURL(/[?&]at=/);
  seen.writes_of_drag = await page.evaluate(() => globalThis.written);
  // What the field says is what the axis says, in whichever zone that was chosen.
  const field = page.getByLabel("Jump to a time, UTC");
  await page.getByRole("button", { name: "Times: local" }).click();
  const edge = (await page.locator(".strip").getAttribute("aria-valuetext")).slice("up to ".length);
  seen.jump = { edge, field: (await field.inputValue()).slice(-edge.length) };
  await field.fill("2026-01-02T03:04:05");
  await field.blur();
  await page.waitForURL(/[?&]at=2026-01-02T03%3A04%3A05/);
  await page.context().close();
}

// The timeline's list has all there is, few of it in the page, and what comes does not move what one reads.
{
  let next = 0;
  const lane = async () => {
    while (next++ < MANY) {
      await api("POST", `/v1/rooms/${ROOM}/messages`, { source: "worker", topic: "steps", payload: { n: next } });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  const { page, go } = await opened(`/rooms/${ROOM}/timeline?as=list`);
  const box = page.locator(".virtual");
  const count = async () => Number(await box.locator("table").getAttribute("aria-rowcount")) - 1;
  await go();
  await box.locator("tbody tr").first().waitFor();
  await until("all are in the list", async () => {
    await box.evaluate((box) => box.scrollTo({ top: box.scrollHeight }));
    return (await count()) >= MANY;
  });
  seen.list = { items: await count(), rows: await box.locator("tbody tr").count() };
  await page.getByText(/^All [\d,]+ are loaded\.$/).waitFor();
  await box.evaluate((box) => box.scrollTo({ top: box.scrollHeight / 2 }));
  const height = () => box.evaluate((box) => box.querySelector("tbody").clientHeight);
  const before = await height();
  await api("POST", `/v1/rooms/${ROOM}/messages`, { source: "worker", topic: "steps", payload: { n: "new" } });
  const fresh = page.getByRole("button", { name: "1 new", exact: true });
  await fresh.waitFor();
  seen.list.moved = (await height()) - before;
  await fresh.click();
  await fresh.waitFor({ state: "detached" });
  await until("the new one is in the list", async () => (await count()) === seen.list.items + 1);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  seen.list.focused = await page.evaluate(() => document.activeElement?.closest("tr")?.getAttribute("aria-rowindex"));
  // Last: axe scrolls what it looks at.
  await look(page, "hub-list");
  await page.context().close();
}

await close();
console.log(JSON.stringify({ ...seen, ...noted }));
