/** The hub as the daemon serves it: its page and its files, and that its session cannot change anything. */
import { brotliDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Visitor } from "../../harness/browser/visitor.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../calls.ts";

const HOSTILE_NAME = `</script><script>alert(1)</script>`;

let daemon: TestDaemon;
let owner: Visitor;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  owner = await Visitor.owner(daemon);
}, 60_000);
afterAll(() => daemon?.stop());

const bootOf = (text: string) => /<script type="application\/json" id="boot">(.*?)<\/script>/s.exec(text)?.[1] ?? "";
const programOf = (text: string) => /<script type="module" src="([^"]+)">/.exec(text)?.[1] ?? "";
const styleOf = (text: string) => /<link rel="stylesheet" href="([^"]+)"\/>/.exec(text)?.[1] ?? "";

describe("a page of the hub", () => {
  test("is the same for each of its paths, and its policy allows no external resources", async () => {
    const nonces = new Set<string>();
    for (const path of [
      "/",
      "/rooms",
      "/rooms/a",
      "/rooms/a/timeline",
      "/rooms/a/agents/b",
      "/audit",
      "/usage",
      "/webhooks",
    ]) {
      const { status, headers, text } = await owner.see(path);
      const policy = headers.get("content-security-policy") ?? "";
      const nonce = /style-src 'self' 'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
      nonces.add(nonce);
      expect([path, status, programOf(text)]).toEqual([path, 200, expect.stringMatching(/^\/ui\/main-\w+\.js$/)]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(headers.get("cache-control")).toMatch(/no-store/);
      expect(JSON.parse(bootOf(text))).toMatchObject({
        url: daemon.webUrl,
        style_nonce: nonce,
        user: { role: "owner" },
      });
    }
    // A predictable nonce would admit an injected style.
    expect(nonces.size).toBe(8);
  });

  test("requires a session, returns to the page after sign-in, and is 404 for an unknown path", async () => {
    for (const path of ["/", "/rooms/a", "/usage"]) {
      expect(await new Visitor(daemon).see(path)).toMatchObject({ status: 303, to: "/signin" });
    }
    const visitor = new Visitor(daemon);
    await visitor.see("/rooms/a/timeline?span=1h&agent=%C3%A4");
    const signedIn = await visitor.send("/signin", { email: "owner@example.org", password: "a long enough secret" });
    expect(signedIn.to).toBe("/rooms/a/timeline?span=1h&agent=%C3%A4");
    expect([...visitor.cookies.keys()].filter((name) => name.endsWith("-asked"))).toEqual([]);
    for (const path of ["/rooms/a/b/c/d/e", "/ui", "/rooms/a/agents"]) {
      const { status } = await owner.see(path);
      expect([path, status === 404 || path === "/rooms/a/agents"]).toEqual([path, true]);
    }
  });

  test("shows a name with a closing script tag as text", async () => {
    await owner.send("/account", { do: "name", name: HOSTILE_NAME });
    const { text } = await owner.see("/rooms");
    expect(text).not.toContain(HOSTILE_NAME);
    expect(JSON.parse(bootOf(text)).user.name).toBe(HOSTILE_NAME);
  });
});

describe("a file of the hub", () => {
  test("is cacheable forever, and is sent compressed to clients that accept that", async () => {
    const { text } = await owner.see("/");
    for (const [path, type] of [
      [programOf(text), "text/javascript; charset=utf-8"],
      [styleOf(text), "text/css; charset=utf-8"],
    ] as const) {
      const plain = await fetch(daemon.url + path, { headers: { "accept-encoding": "gzip, br;q=0" } });
      const packed = await fetch(daemon.url + path, { headers: { "accept-encoding": "gzip, br" }, decompress: false });
      const expected = { type, kept: "public, max-age=31536000, immutable", sniff: "nosniff", vary: "Accept-Encoding" };
      for (const each of [plain, packed]) {
        expect({
          type: each.headers.get("content-type"),
          kept: each.headers.get("cache-control"),
          sniff: each.headers.get("x-content-type-options"),
          vary: each.headers.get("vary"),
        }).toEqual(expected);
      }
      expect([plain.headers.get("content-encoding"), packed.headers.get("content-encoding")]).toEqual([null, "br"]);
      const bytes = Buffer.from(await plain.arrayBuffer());
      expect(brotliDecompressSync(await packed.arrayBuffer()).equals(bytes)).toBe(true);
    }
  });

  test("of another version is 404, and is not cacheable", async () => {
    const answer = await fetch(`${daemon.url}/ui/main-00000000.js`);
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([404, "no-store"]);
  });

  test("is small: files that every page loads have at most 30 kB", async () => {
    const { text } = await owner.see("/");
    const programs = await importedBy(programOf(text));
    const sizes = await Promise.all([...programs, styleOf(text)].map(packedBytes));
    const bytes = sizes.reduce((sum, each) => sum + each, 0);
    console.log(`the hub's shell: ${bytes} bytes in ${sizes.length} files`);
    expect(bytes).toBeLessThanOrEqual(30_000);
  });

  test("is identified by its static imports, not by its dynamic ones", () => {
    const text = `import{a as b}from"./part-1.js";import"./part-2.js";export*from"./part-3.js";x=()=>import("./part-4.js")`;
    expect(namesIn(text)).toEqual(["part-1.js", "part-2.js", "part-3.js"]);
  });
});

/** The brotli form, as a browser takes it over TLS. */
async function packedBytes(path: string): Promise<number> {
  const packed = await fetch(daemon.url + path, { headers: { "accept-encoding": "br" }, decompress: false });
  expect([path, packed.status, packed.headers.get("content-encoding")]).toEqual([path, 200, "br"]);
  return (await packed.arrayBuffer()).byteLength;
}

/** The files that a program imports on start, including itself. */
async function importedBy(path: string, known = new Set<string>()): Promise<Set<string>> {
  if (known.has(path)) return known;
  known.add(path);
  const text = await (await fetch(daemon.url + path)).text();
  for (const name of namesIn(text)) await importedBy(`/ui/${name}`, known);
  return known;
}

/** `from"./x"` and `import"./x"`, the build's form of static imports. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\s*"\.\/([^"]+)"/g)].map(([, name = ""]) => name);
}

test("a session's request for current usage is made as that person, even from the host itself", async () => {
  const own = await owner.fetch("GET", "/v1/top");
  expect(await own.json()).toMatchObject({ items: [], host: null });
  expect(await (await fetch(`${daemon.url}/v1/top`)).json()).toMatchObject({ host: { rooms: 0 } });
});

test("a client that connects is audited once, with its declared name", async () => {
  const hello = (name: string) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name, version: "1.2" } },
  });
  const headers = {
    authorization: `Bearer ${daemon.apiKey}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  for (const name of ["one", "one", "x".repeat(5000), ""]) {
    const body = JSON.stringify(hello(name));
    await (await fetch(`${daemon.url}/mcp`, { method: "POST", headers, body })).text();
  }
  // The record is written after the response, because no caller waits for it.
  const clients = async (): Promise<string[]> => {
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=mcp.connected&order=asc");
    return items.map(({ details }: { details: { client: string } }) => details.client);
  };
  const last = `${"x".repeat(64)} 1.2`;
  expect(await until(clients, (seen) => seen.includes(last))).toEqual(["one 1.2", last]);
});
