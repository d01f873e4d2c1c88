/**
 * The template `browser`: Chromium is there at once, is used from outside by a program of ours, and no two sandboxes have processes that go
 * on with the same random numbers. Building it takes minutes, so it runs where ROOMD_TEST_LONG is 1.
 */
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ownTemplates, shippedTemplate } from "../harness/built-templates.ts";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { LONG, withGuests } from "../harness/guests.ts";
import { realNode } from "../harness/real-terminal.ts";

const CALLER = join(import.meta.dirname, "../harness/browser-caller.mjs");
const BUILD_MS = 1_200_000;
/** Since when each process of Chromium's runs, in seconds, and what it is for. */
const AGES = "ps -eo etimes=,args= | grep '[/]chromium --'";
const AGENTS = ["one", "other"];

if (!LONG) console.log("the browser: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

describe.skipIf(!LONG)("where there is time", () => {
  withGuests("browser", { prepare: async (daemon: TestDaemon) => void ownTemplates(daemon) }, (guests) => {
    beforeAll(async () => {
      const { daemon } = guests;
      await shippedTemplate(daemon, "browser");
      await daemon.room("b");
      for (const agent of AGENTS) {
        const began = performance.now();
        const made = await daemon.sandbox("b", agent, guests.cid(), { template_id: "browser", memory_mib: 1024 });
        console.log(`${agent}: ${made.start_mode} in ${Math.round(performance.now() - began)} ms`, made.boot);
      }
    }, BUILD_MS);

    test("what draws random numbers began in this sandbox", async () => {
      for (const agent of AGENTS) {
        const lines = (await guests.daemon.sh("b", agent, AGES)).split("\n");
        const ages = (of: RegExp) => lines.filter((line) => of.test(line)).map((line) => Number.parseInt(line, 10));
        const [browser = 0] = ages(/^((?!--type=).)*$/);
        const drawing = ages(/--type=(?:renderer|utility)/);
        expect(browser).toBeGreaterThan(0);
        expect(Math.max(0, ...drawing)).toBeLessThan(browser);
      }
    });

    test("a program connects, draws a page and takes a picture, and none was there before", async () => {
      const seen: Json[] = [];
      for (const agent of AGENTS) {
        const told = await guests.daemon.ok("GET", `/v1/rooms/b/sandboxes/${agent}/browser`);
        const caller = Bun.spawn([realNode(), CALLER, JSON.stringify(told)], { stdout: "pipe", stderr: "pipe" });
        const [printed, errors, status] = await Promise.all([
          caller.stdout.text(),
          caller.stderr.text(),
          caller.exited,
        ]);
        expect([status, errors]).toEqual([0, ""]);
        seen.push(JSON.parse(printed));
      }
      for (const each of seen) {
        expect(each).toMatchObject({ pages: [], title: "made", text: "here" });
        expect(each.picture_bytes).toBeGreaterThan(1000);
      }
      expect(seen[0].drawn).not.toBe(seen[1].drawn);
    });
  });
});
