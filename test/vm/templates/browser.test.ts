/**
 * The template `browser`: Chromium is there immediately, is controlled from outside by a program of ours and by `examples/browser.ts`, and
 * no two sandboxes have processes that continue with the same random numbers. Building it takes minutes, so it runs if ROOMD_TEST_LONG is
 * 1.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realNode } from "../../harness/clients/real-terminal.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { ExposedPort } from "../../harness/exposed-port.ts";
import { freePort } from "../../harness/free-port.ts";
import { LONG, until, withGuests } from "../../harness/guests.ts";
import { ownTemplates, shippedTemplate } from "../../harness/images/built-templates.ts";
import { Outside } from "../../harness/images/outside.ts";

const CALLER = join(import.meta.dirname, "../../harness/browser/browser-caller.mjs");
const EXAMPLE = join(import.meta.dirname, "../../../examples/browser.ts");
const PLAYWRIGHT = join(import.meta.dirname, "../../../node_modules/playwright-core");
const BUILD_MS = 1_200_000;
/** Emulated, a page takes tens of seconds. */
const USE_MS = 400_000;
/** The age of each Chromium process, in seconds, and its purpose. */
const AGES = "ps -eo etimes=,args= | grep '[/]chromium --'";
const AGENTS = ["one", "other"];

if (!LONG) console.log("the browser: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

let outside: Outside;
/** The page of another sandbox, once that serves it. */
let served: string;
/** At an address that sandboxes can have in their lists, as the operator lets them: others of the room are reached by their exposed ports. */
const prepare = async (daemon: TestDaemon) => {
  ownTemplates(daemon);
  outside = await Outside.start([]);
  daemon.env.ROOMD_HTTP_LISTEN = `${outside.hostV4}:${await freePort()}`;
  daemon.env.ROOMD_HTTP_INSECURE = "true";
  daemon.env.ROOMD_EGRESS_PRIVATE_RANGES = `${outside.hostV4}/32`;
};

describe.skipIf(!LONG)("long tests", () => {
  withGuests("browser", { prepare }, (guests) => {
    afterAll(() => outside?.[Symbol.asyncDispose]());

    beforeAll(async () => {
      const { daemon } = guests;
      await shippedTemplate(daemon, "browser");
      await daemon.room("b");
      for (const agent of AGENTS) {
        const began = performance.now();
        const made = await daemon.sandbox("b", agent, guests.cid(), {
          template_id: "browser",
          memory_mib: 1024,
          egress_allowlist: [`${outside.hostV4}/32`],
        });
        console.log(`${agent}: ${made.start_mode} in ${Math.round(performance.now() - began)} ms`, made.boot);
      }
    }, BUILD_MS);

    test("random numbers were first drawn in this sandbox, not in the template", async () => {
      for (const agent of AGENTS) {
        const lines = (await guests.daemon.sh("b", agent, AGES)).split("\n");
        const ages = (of: RegExp) => lines.filter((line) => of.test(line)).map((line) => Number.parseInt(line, 10));
        const [browser = 0] = ages(/^((?!--type=).)*$/);
        const drawing = ages(/--type=(?:renderer|utility)/);
        expect(browser).toBeGreaterThan(0);
        expect(Math.max(0, ...drawing)).toBeLessThan(browser);
      }
    });

    test(
      "a program connects, renders a page and takes a screenshot, and no browser ran before",
      async () => {
        const { daemon } = guests;
        await daemon.sandbox("b", "server", guests.cid());
        const serve =
          "mkdir /srv/page; echo '<title>served</title>from the other sandbox' >/srv/page/index.html; setsid python3 -m http.server -d /srv/page 8000 >/dev/null 2>&1 </dev/null &";
        await daemon.sh("b", "server", serve);
        const port = await ExposedPort.expose(daemon, "b/sandboxes/server", { port: 8000 });
        await until("the server answers", async () => (await port.fetch("/")).status === 200);
        served = `${port.url}/?port_token=${port.record.token}`;
        const seen: Json[] = [];
        for (const agent of AGENTS) {
          const details = await daemon.ok("GET", `/v1/rooms/b/sandboxes/${agent}/browser`);
          const caller = Bun.spawn([realNode(), CALLER, JSON.stringify({ ...details, page: served })], {
            stdout: "pipe",
            stderr: "pipe",
          });
          const [printed, errors, status] = await Promise.all([
            caller.stdout.text(),
            caller.stderr.text(),
            caller.exited,
          ]);
          expect([status, errors]).toEqual([0, ""]);
          console.log(`${agent}: ${printed}`);
          seen.push(JSON.parse(printed));
        }
        for (const each of seen) {
          expect(each).toMatchObject({ pages: [], title: "made", text: "here", served: "from the other sandbox" });
          expect(each.picture_bytes).toBeGreaterThan(1000);
        }
        expect(seen[0].drawn).not.toBe(seen[1].drawn);
      },
      USE_MS,
    );

    test(
      "examples/browser.ts prints a page's title, and leaves its screenshot and no room",
      async () => {
        const { daemon } = guests;
        const project = mkdtempSync(join(tmpdir(), "roomd-browser-"));
        try {
          // Node from 24 on runs the program unchanged; the oldest one that the SDK supports runs it with `await using` rewritten.
          const built = await Bun.build({
            ...{ entrypoints: [EXAMPLE], outdir: project, naming: "browser.mjs" },
            ...{ target: "node", packages: "external" },
          });
          expect(built.logs).toEqual([]);
          writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
          const install = ["install", "--no-audit", "--no-fund", "--silent", `${daemon.url}/sdk/roomd-sdk.tgz`];
          execFileSync("npm", install, { cwd: project });
          symlinkSync(PLAYWRIGHT, join(project, "node_modules", "playwright-core"));
          const example = Bun.spawn([realNode(), "browser.mjs", served], {
            ...{ cwd: project, stdout: "pipe", stderr: "pipe" },
            env: { ...process.env, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey },
          });
          const [printed, errors, status] = await Promise.all([
            example.stdout.text(),
            example.stderr.text(),
            example.exited,
          ]);
          expect([printed, errors, status]).toEqual(["title: served\npicture: page.png\n", "", 0]);
          expect(readFileSync(join(project, "page.png")).subarray(1, 4).toString()).toBe("PNG");
          const { items } = await daemon.ok("GET", "/v1/rooms?state=active");
          expect(items.map(({ room_id }: Json) => room_id)).toEqual(["b"]);
        } finally {
          rmSync(project, { recursive: true, force: true });
        }
      },
      USE_MS,
    );
  });
});
