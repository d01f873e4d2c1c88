/** The template `default`: the programs that first commands need, and packages that both of its users install. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { LONG, withGuests } from "../../harness/guests.ts";
import { writeNpmMirror, writePipMirror } from "../../harness/images/mirrors.ts";
import { Outside } from "../../harness/images/outside.ts";

/** Without KVM, next to other guests. */
const EXEC_MS = 240_000;
const LONG_MS = 2 * EXEC_MS;
const PROGRAMS = [
  ...[
    "pip",
    "npm",
    "npx",
    "node",
    "python",
    "python3",
    "make",
    "gcc",
    "g++",
    "jq",
    "rg",
    "unzip",
    "zip",
    "wget",
    "sudo",
  ],
  ...["tmux", "nano", "git", "curl"],
];

const NAME = "allowed.example";
const CA = "/mnt/drive/ca.pem";
/** The settings for registries of one's own. */
const ENV = {
  PIP_INDEX_URL: `https://${NAME}/pip/`,
  PIP_CERT: CA,
  NPM_CONFIG_REGISTRY: `https://${NAME}/npm`,
  NODE_EXTRA_CA_CERTS: CA,
};

let outside: Outside;
const prepare = async (daemon: { env: Record<string, string> }) => {
  outside = await Outside.start([NAME]);
  daemon.env.ROOMD_EGRESS_HOSTS_FILE = outside.hostsFile;
};

withGuests("the template `default`", { prepare }, (guests) => {
  const run = (body: Record<string, unknown>): Promise<Json> =>
    guests.daemon.exec("t", "a", { timeout_ms: EXEC_MS, ...body });
  const sh = async (command: string, user = "root"): Promise<string> => {
    const done = await run({ command, user });
    expect({ command, ...done }).toMatchObject({ exit_code: 0 });
    return done.stdout.trim();
  };

  beforeAll(async () => {
    outside.setHosts({ [NAME]: outside.v4 });
    writeNpmMirror(outside.root, `https://${NAME}`);
    writePipMirror(outside.root);
    const { daemon } = guests;
    await daemon.room("t");
    await daemon.ok("POST", "/v1/rooms/t/drive/write", { path: "/ca.pem", content: outside.issued.authority });
    await daemon.sandbox("t", "a", guests.cid(), { memory_mib: 1024, egress_allowlist: [NAME], env: ENV });
  });
  afterAll(() => outside?.[Symbol.asyncDispose]());

  test("has the documented programs", async () => {
    expect(
      (await sh(`for name in ${PROGRAMS.join(" ")}; do command -v "$name" || echo "no $name"; done`)).split("\n"),
    ).toEqual(PROGRAMS.map((name) => expect.stringMatching(new RegExp(`^/.*/${RegExp.escape(name)}$`))));
  });

  if (!LONG)
    console.log(
      "root's installs are left out, since pip and npm take a minute without KVM; ROOMD_TEST_LONG=1 runs them",
    );
  // Programs that root installs are on every user's PATH, so root comes second.
  test.each(LONG ? ["agent", "root"] : ["agent"])(
    "installs programs with pip and npm as %s",
    { timeout: LONG_MS },
    async (user) => {
      await sh("pip install --quiet tiny", user);
      expect(await sh("tiny-pip; python3 -c 'import tiny; print(tiny.answer)'", user)).toBe("42\n42");
      await sh("npm install --global tiny", user);
      expect(await sh("tiny-npm", user)).toBe("42");
    },
  );

  if (!LONG)
    console.log(
      "installs packages into a project: left out, since npm takes a minute without KVM; ROOMD_TEST_LONG=1 runs it",
    );
  test("installs packages into a project", { skip: !LONG, timeout: LONG_MS }, async () => {
    await sh("mkdir ~/project && cd ~/project && npm install tiny", "agent");
    expect(await sh("cd ~/project && node -p 'require(\"tiny\")' && npx tiny-npm", "agent")).toBe("42\n42");
    await sh("cd ~/project && python3 -m venv venv && venv/bin/pip install --quiet tiny", "agent");
    expect(await sh("~/project/venv/bin/tiny-pip", "agent")).toBe("42");
  });

  test("compiles a program", { timeout: LONG_MS }, async () => {
    await sh(
      `mkdir -p /tmp/c && cd /tmp/c && printf '#include <stdio.h>\\nint main(void) { puts("made"); }\\n' >made.c && make made`,
    );
    expect(await sh("/tmp/c/made", "agent")).toBe("made");
  });

  test("lets git work in a checkout of another user", async () => {
    await sh("cd /mnt/drive && git init --quiet shared");
    expect(await sh("git -C /mnt/drive/shared status --short --branch", "agent")).toMatch(/^## No commits yet/);
  });
});
