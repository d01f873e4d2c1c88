/**
 * Templates from recipes: the programs that they start are running in every sandbox, and a program that does not come up is reported with
 * its output.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { EMBEDDED } from "../../../daemon/domain/templates/recipe.ts";
import { LONG, testAlone, until } from "../../harness/guests.ts";
import { buildRecipe, ownTemplates } from "../../harness/images/built-templates.ts";

const BUILD_MS = 480_000;

/** Of the packages of `default`, so that nothing is fetched. */
function recipe(name: string, more: string): string {
  return (EMBEDDED.default ?? "")
    .replace('template_id = "default"', `template_id = "${name}"`)
    .replace("min_memory_mib = 256", "min_memory_mib = 384")
    .concat(`\n${more}\n`);
}

/** On a cold boot: longer than the setup of a guest that starts nothing may take. */
const START_SECONDS = LONG ? 35 : 2;
const BOOT_MS = 180_000;
const COUNTING = `
start = """
echo begun >>/root/begun
sleep ${START_SECONDS}
(n=0; while :; do n=$((n + 1)); echo $n >/root/next; mv /root/next /root/count; sleep 0.1; done) &
echo $! >/run/counter
"""
ready = "test -s /root/count && test $(cat /root/count) -gt 5"
ready_timeout_seconds = 120
before_save = "echo at rest >>/root/begun; before=$(cat /root/count); sleep 1; test $(cat /root/count) = $before"
restored = "echo restored >>/root/begun"
`;

if (!LONG)
  console.log(
    "a recipe that takes longer to start than a guest, in a sandbox that boots: left out; ROOMD_TEST_LONG=1 runs it",
  );

testAlone(
  "a program started by a recipe runs in each sandbox, and is started by a cold boot",
  { prepare: async (daemon) => void ownTemplates(daemon), env: { ROOMD_LIMITS_VCPUS: "3" } },
  async (daemon) => {
    const built = await buildRecipe(daemon, "counting", recipe("counting", COUNTING));
    expect([built.status, built.stderr]).toEqual([0, expect.any(String)]);
    expect(JSON.parse(built.stdout)).toMatchObject({ template_id: "counting", min_memory_mib: 384 });

    await daemon.room("r");
    const create = (agent_id: string, guest_cid: number, more: object) =>
      daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", {
        ...{ agent_id, guest_cid, template_id: "counting", memory_mib: 512 },
        ...more,
      });
    expect((await create("small", 9100, { memory_mib: 256 })).body.code).toBe("memory_below_template_minimum");

    const restored = await create("restored", 9100, {});
    expect([restored.status, restored.body.start_mode]).toEqual([201, "snapshot"]);
    const look =
      "kill -0 $(cat /run/counter) && paste -sd, /root/begun && awk '/^MemTotal/ { print $2 }' /proc/meminfo";
    const [started, kib] = (await daemon.sh("r", "restored", look)).split("\n");
    expect(started).toBe("begun,at rest,restored");
    expect(Number(kib)).toBeGreaterThan(400 * 1024);
    const moves = "before=$(cat /root/count); sleep 1; test $(cat /root/count) -gt $before && echo moves";
    expect(await daemon.sh("r", "restored", moves)).toBe("moves");
    // Only the agent has priority: neither the saved programs nor a command has.
    const nice = "cut -d' ' -f19 /proc/1/stat /proc/$(cat /run/counter)/stat /proc/self/stat";
    expect(await daemon.sh("r", "restored", nice)).toBe("-10\n0\n0");

    if (LONG) {
      await create("booted", 9101, { vcpu_count: 3 });
      const get = () => daemon.ok("GET", "/v1/rooms/r/sandboxes/booted");
      // No call waits for that long.
      await until("the guest has booted", async () => !["creating", "starting"].includes((await get()).state), BOOT_MS);
      const booted = await get();
      expect([booted.state, booted.start_mode, booted.status.message]).toEqual(["running", "cold", expect.any(String)]);
      expect(booted.boot.agent_start_ms).toBeGreaterThan(START_SECONDS * 1000);
      expect(await daemon.sh("r", "booted", `${look} && ${moves}`)).toMatch(/^begun\n\d+\nmoves$/);
    }
    await daemon.ok("DELETE", "/v1/rooms/r?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  },
  BUILD_MS,
);

testAlone(
  "a template whose start fails is not built, and the failure has its last output",
  { prepare: async (daemon) => void ownTemplates(daemon) },
  async (daemon) => {
    const built = await buildRecipe(daemon, "broken", recipe("broken", 'start = "echo no such luck >&2; exit 3"'));
    expect(built.status).not.toBe(0);
    expect(JSON.parse(built.stderr || built.stdout)).toMatchObject({
      code: "build_failed",
      details: { step: "start", last_lines: ["no such luck"] },
    });
    expect(readdirSync(join(daemon.dataDir, "templates", "broken"))).toEqual([]);
    expect(daemon.leftovers()).toEqual([]);
  },
  BUILD_MS,
);
