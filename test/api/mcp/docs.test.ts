/**
 * The page at /docs: it covers the whole interface, has no external dependencies, and its headers make the browser block all else. Its
 * script is tested in test/web.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERRORS } from "../../../shared/api/errors.ts";
import { REQUEST_HEADERS, RESPONSE_HEADERS, requestHeadersOf } from "../../../shared/api/headers.ts";
import { clientWays } from "../../../shared/prompts/clients.ts";
import { type Answer, TestDaemon } from "../../harness/daemon.ts";
import { bare } from "../calls.ts";
import { OPERATIONS } from "../requests.ts";

const DOCS = join(import.meta.dirname, "../../../docs");
/** Pages for users; decisions about the code are in a separate folder. */
const pages = () =>
  readdirSync(DOCS)
    .filter((name) => name.endsWith(".md"))
    .sort();

let daemon: TestDaemon;
let page: Answer;
let html: string;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  page = await bare(daemon, "GET", "/docs");
  html = page.body;
});
afterAll(() => daemon.stop());

test("the page is public HTML", () => {
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(html).toMatch(/^<!doctype html>\n<html lang="en">/);
});

test.each(OPERATIONS)("the page documents $name completely", (operation) => {
  const { name, method, path, summary, query, body, errors } = operation;
  const section = html.split("<section ").find((each) => each.startsWith(`id="${name}"`)) ?? "";
  expect(section).toContain(`<h3><a href="#${name}">${escaped(summary)}</a></h3>`);
  expect(section).toContain(`<span class="method">${method}</span> ${path.replace("*}", "}")}</code>`);
  expect(section).toContain("$ROOMD_URL");
  const fields = [
    ...Object.keys(query.properties),
    ...(typeof body === "object" ? Object.keys(body?.properties ?? {}) : []),
  ];
  for (const field of fields) expect(section).toContain(`<td><code>${field}</code>`);
  for (const code of errors) expect(section).toContain(`#error-${code}`);
  for (const header of requestHeadersOf(operation)) {
    expect(section).toContain(`href="#header-${REQUEST_HEADERS[header].name}"`);
  }
  for (const status of Object.values(operation.outcomes)) expect(section).toContain(`<code>${status}</code>`);
  expect(section).not.toContain("undefined");
  // Each example can be copied, and the operation found by its name, its words, its path and its fields.
  expect(section.split("<pre>").length).toBe(section.split('class="copy" hidden>copy</button><pre>').length);
  const words = new RegExp(`<li data-search="([^"]*)"><a href="#${name}">`).exec(html)?.[1]?.split(" ") ?? [];
  expect(words).toEqual(expect.arrayContaining([name, method.toLowerCase(), path.replace("*}", "}"), ...fields]));
});

describe("the pages of docs/", () => {
  test("are all served unchanged", async () => {
    for (const name of pages()) {
      const served = await bare(daemon, "GET", `/docs/${name}`);
      expect([name, served.status, served.headers.get("content-type")]).toEqual([
        ...[name, 200],
        "text/markdown; charset=utf-8",
      ]);
      expect(served.body).toBe(readFileSync(join(DOCS, name), "utf8"));
    }
    expect((await bare(daemon, "GET", "/docs/none.md")).status).toBe(404);
  });

  test("are rendered for browsers with headings, code and tables, and without scripts", async () => {
    const accept = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    for (const name of pages()) {
      const { status, headers, body } = await bare(daemon, "GET", `/docs/${name}`, accept);
      expect([name, status, headers.get("content-type")]).toEqual([name, 200, "text/html; charset=utf-8"]);
      expect(headers.get("vary")).toBe("Accept");
      const [, style = ""] = /<style>([^<]*)<\/style>/.exec(body) ?? [];
      const digest = createHash("sha256").update(style).digest("base64");
      expect(headers.get("content-security-policy")).toContain(`default-src 'none'; style-src 'sha256-${digest}'`);
      expect(body).toMatch(/<h1 id="[^"]+">/);
      expect(body).not.toMatch(/<script|<iframe|<img|\son\w+=|javascript:/i);
      expect(body).toContain(name === "README.md" ? '<a href="cli.md">' : `<a href="${name}" aria-current="page">`);
    }
    const { body: common } = await bare(daemon, "GET", "/docs/troubleshooting.md", accept);
    const [, id = ""] = /<a href="#(\w+)">below</.exec(common) ?? [];
    expect(common).toContain(`<h2 id="${id}">`);
    const { body } = await bare(daemon, "GET", "/docs/cli.md", accept);
    expect(body).toMatch(/<pre><code class="language-sh[^"]*">roomd room create build-42/);
    expect(body).toContain("<th>Column</th>");
  });

  test("are listed for models with their subjects, and every link has a target", async () => {
    const { status, body } = await bare(daemon, "GET", "/llms.txt");
    expect([status, body.slice(0, 8)]).toEqual([200, "# roomd\n"]);
    const links = [...body.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map((match) => String(match[1]));
    for (const link of links)
      expect([link, (await bare(daemon, "GET", new URL(link).pathname)).status]).toEqual([link, 200]);
    const listed = links.filter((link) => link.endsWith(".md")).map((link) => link.split("/").at(-1));
    expect([...listed, "README.md"].sort()).toEqual(pages());
  });
});

test("the search index has a line for every error and header", () => {
  for (const code of Object.keys(ERRORS))
    expect(html).toMatch(new RegExp(`<li data-search="${code} [^"]+"><a href="#error-${code}">`));
  for (const header of Object.keys(RESPONSE_HEADERS)) expect(html).toContain(`data-search="${header.toLowerCase()} "`);
});

test("controls that require the script are hidden until it runs", () => {
  const controls = html.match(/<(button|label|input)\b[^>]*>/g) ?? [];
  expect(controls.length).toBeGreaterThan(OPERATIONS.length);
  for (const control of controls.filter((each) => !each.startsWith("<input"))) expect(control).toMatch(/ hidden>$/);
  expect(html).toMatch(/<label class="search" hidden><input type="search" [^>]*><\/label>/);
});

test("every error and header is documented, and links have targets", () => {
  for (const code of Object.keys(ERRORS)) expect(html).toContain(`<tr id="error-${code}">`);
  for (const header of Object.keys(RESPONSE_HEADERS)) expect(html).toContain(`<tr id="header-${header}">`);
  const ids = [...html.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]);
  expect(new Set(ids).size).toBe(ids.length);
  const links = [...html.matchAll(/ href="([^"]+)"/g)].map((match) => String(match[1]));
  expect(links.length).toBeGreaterThan(OPERATIONS.length);
  for (const link of links) {
    if (link !== "/v1/openapi.json") expect(ids, link).toContain(link.slice(1));
  }
});

test("the page loads nothing external, and its policy forbids that", () => {
  const policy = String(page.headers.get("content-security-policy"));
  const style = html.match(/<style>([^<]*)<\/style>/)?.[1] ?? "";
  const script = html.match(/<script>([\s\S]*?)<\/script>/)?.[1] ?? "";
  const digest = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  expect(style.length * script.length).toBeGreaterThan(0);
  expect(policy.split("; ")).toEqual([
    "default-src 'none'",
    `style-src ${digest(style)}`,
    `script-src ${digest(script)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ]);
  expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  expect(html.split("<script").length).toBe(2);
  expect(script).not.toMatch(/innerHTML|insertAdjacent|\beval\b|fetch\(|XMLHttp|import\(/);
  expect(html.replace(script, "")).not.toMatch(
    /<script .|<iframe|<link|<img|<object|<form|\son\w+=|\sstyle=|\ssrc=|@import|url\(|javascript:/i,
  );
  expect(html).not.toMatch(/(?:href|action)="(?:\w+:)?\/\//);
});

test("the page accepts GET and HEAD only", async () => {
  const head = await bare(daemon, "HEAD", "/docs");
  expect({ status: head.status, body: head.body }).toEqual({ status: 200, body: "" });
  const post = await bare(daemon, "POST", "/docs");
  expect({ status: post.status, code: post.body.code, allow: post.headers.get("allow") }).toEqual({
    status: 405,
    code: "method_not_allowed",
    allow: "GET, HEAD",
  });
});

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

test("each MCP client's setup is documented, with sign-in and with a key", () => {
  for (const { client, signsIn, hasKey } of clientWays("")) {
    expect(html).toContain(`<summary>${client}</summary>`);
    for (const { into } of [signsIn, hasKey]) expect(html).toContain(`into ${into}:`);
  }
  expect(html).toContain("--bearer-token-env-var ROOMD_API_KEY");
  expect(html).not.toContain(daemon.apiKey);
});
