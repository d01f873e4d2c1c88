/**
 * The way of two people from nothing to a program at work, and to its end, by keyboard alone:
 * `node walk-reader.mjs CHROMIUM URL SETUP-LINK PICTURES ROOM`. The program is the official MCP client, let in once by a key and once by a
 * person. Prints one JSON object with what was seen.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { keepPasskeys, openBrowser, press, tabTo, type } from "./browser.mjs";

const [executablePath, url, setupLink, pictures, room] = process.argv.slice(2);
const { open, look, noted, close } = await openBrowser(executablePath, url, pictures);
const seen = {};

const newClient = () =>
  new Client({ name: "walker", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
const mcp = new URL(`${url}/mcp`);

/** A call that waits until somebody cuts it, once the service has it; `over` resolves with when that was. */
async function waiting(client, key, agent_id) {
  const call = { name: "agent_wait", arguments: { room_id: room, agent_id, wait_ms: 45_000 } };
  const over = client.callTool(call, { timeout: 60_000 }).then(
    (result) => ({ at: performance.now(), said: JSON.stringify(result) }),
    (error) => ({ at: performance.now(), said: String(error) }),
  );
  const headers = { authorization: `Bearer ${key}` };
  for (let waits = false; !waits; ) {
    const { items } = await (await fetch(`${url}/v1/rooms/${room}/agents`, { headers })).json();
    waits = items.some((agent) => agent.agent_id === agent_id && agent.waiting_on.length > 0);
  }
  return { over };
}

/** By the keyboard; returns when. */
async function end(page, ...labels) {
  for (const label of labels.slice(0, -1)) {
    await tabTo(page, label);
    await page.keyboard.press("Enter");
  }
  await tabTo(page, labels.at(-1));
  const loaded = page.waitForNavigation({ timeout: 15_000 });
  // From the service's yes on; how long the browser takes to ask is its own.
  const answered = page.waitForResponse((response) => response.request().method() === "POST", { timeout: 15_000 });
  const at = answered.then(() => performance.now());
  await page.keyboard.press("Enter");
  await loaded;
  return await at;
}

/** Where an application on this computer hears of the person's answer. */
async function listen() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const answer = new Promise((resolve) => {
    server.on("request", (request, response) => {
      const { searchParams } = new URL(request.url, "http://127.0.0.1");
      if (searchParams.has("code")) resolve(searchParams);
      // With an icon of its own, so that the browser asks for none when nobody listens any more.
      response.setHeader("content-type", "text/html");
      response.end('<!doctype html><title>In</title><link rel="icon" href="data:,">You can close this page.');
    });
  });
  return { server, answer, redirectUrl: `http://127.0.0.1:${server.address().port}/callback` };
}

/** What the client keeps of its signing in. */
function providerOf(redirectUrl) {
  const kept = {};
  return {
    redirectUrl,
    clientMetadata: {
      client_name: "Walker",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    state: () => "walk",
    clientInformation: () => kept.information,
    saveClientInformation: (information) => {
      kept.information = information;
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => {
      kept.tokens = tokens;
    },
    redirectToAuthorization: (place) => {
      kept.place = place;
    },
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier;
    },
    codeVerifier: () => kept.verifier,
    saveDiscoveryState: (state) => {
      kept.discovered = state;
    },
    discoveryState: () => kept.discovered,
    kept,
  };
}

/** Connects by the person's own yes in the browser. */
async function letIn(page) {
  const { server, answer, redirectUrl } = await listen();
  try {
    const authProvider = providerOf(redirectUrl);
    const transport = new StreamableHTTPClientTransport(mcp, { authProvider });
    await newClient()
      .connect(transport)
      .catch((error) => {
        if (!(error instanceof UnauthorizedError)) throw error;
      });
    await page.goto(String(authProvider.kept.place));
    await look(page, "walk-consent");
    await tabTo(page, "Authorize");
    await page.keyboard.press("Enter");
    const code = await answer;
    await page.waitForURL((place) => place.href.startsWith(redirectUrl)); // what is asked of the page next would cut this off
    await transport.finishAuth(code);
    const client = newClient();
    await client.connect(new StreamableHTTPClientTransport(mcp, { authProvider }));
    return client;
  } finally {
    server.close();
  }
}

try {
  const owner = await open();
  await owner.goto(setupLink);
  await owner.getByRole("heading", { name: "Set up roomd" }).waitFor();
  await type(owner, "Your name", "Ada");
  await type(owner, "E-mail", "ada@example.org");
  await type(owner, "Password", "seven green umbrellas");
  await press(owner, "Set up");
  await press(owner, "/account");
  await press(owner, "Members");
  await press(owner, "Create invitation link");
  const link = await owner.locator("#link").textContent();

  const person = await open();
  await keepPasskeys(person);
  await person.goto(link);
  await type(person, "Your name", "Bob");
  await type(person, "E-mail", "bob@example.org");
  await press(person, "Use a passkey instead");
  seen.person = person.url();

  await press(person, "/account");
  await press(person, "API keys");
  await type(person, "Name", "walker's");
  await press(person, "Create key");
  const key = /ROOMD_API_KEY=(\S+)/.exec(await person.locator("#exports").textContent())?.[1];
  await press(person, "API keys");
  seen.key_shown_again = (await person.content()).includes(key);

  const byKey = newClient();
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await byKey.connect(new StreamableHTTPClientTransport(mcp, { requestInit }));
  const byPerson = await letIn(person);
  seen.tools = [(await byKey.listTools()).tools.length, (await byPerson.listTools()).tools.length];

  await person.goto(`${url}/account/keys`);
  seen.keys = await person.locator("tbody tr").allTextContents();
  await press(person, "Applications");
  await look(person, "walk-applications");
  seen.applications = await person.locator("tbody tr").allTextContents();

  const ofPerson = await waiting(byPerson, key, "by-person");
  const ofKey = await waiting(byKey, key, "by-key");
  const signedOutAt = await end(person, "Revoke Walker", "Revoke access");
  const personEnded = await ofPerson.over;
  await press(person, "API keys");
  const revokedAt = await end(person, "Revoke walker's", "Revoke permanently");
  const keyEnded = await ofKey.over;
  seen.cut = [
    { by: "person", after_ms: personEnded.at - signedOutAt, said: personEnded.said },
    { by: "key", after_ms: keyEnded.at - revokedAt, said: keyEnded.said },
  ];
  seen.left = await person.locator("tbody tr").allTextContents();
} finally {
  await close();
}
console.log(JSON.stringify({ ...seen, ...noted }));
