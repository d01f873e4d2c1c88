/** Restore hooks of a sandbox: which ones run, in which order, for how long, and with which environment. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AfterRestore } from "../../../guest-agent/after-restore.ts";
import { until } from "../../harness/guests.ts";

let root: string;
let place: string;
let reports: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "roomd-hooks-"));
  place = join(root, "after-restore.d");
  mkdirSync(place);
  reports = [];
});
afterEach(() => rmSync(root, { recursive: true }));

function hook(name: string, script: string, mode = 0o755): string {
  const path = join(place, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, mode);
  return path;
}

function make(timeMs = 20_000): AfterRestore {
  const report = (message: string, error?: unknown) =>
    void reports.push(error === undefined ? message : `${message}: ${String(error)}`);
  return new AfterRestore({ spare: () => {} }, { place, output: join(root, "log", "output"), timeMs, report });
}

const written = () => readFileSync(join(root, "said"), "utf8");
const says = (word: string) => `echo ${word} >>${root}/said`;

test("without a directory, or with an empty one, nothing runs", async () => {
  await make().run("resumed", {});
  rmSync(place, { recursive: true });
  await make().run("resumed", {});
  expect(reports).toEqual([]);
});

test("executable files run one after another in the order of their names, links too, and nothing else", async () => {
  hook("20-last", says("last"));
  hook("10-first", `sleep 0.3; ${says("first")}`);
  hook("15-plain", says("plain"), 0o644);
  hook(".hidden", says("hidden"));
  mkdirSync(join(place, "17-directory"));
  symlinkSync("/nowhere", join(place, "18-broken"));
  writeFileSync(join(root, "elsewhere"), `#!/bin/sh\n${says("linked")}\n`, { mode: 0o755 });
  symlinkSync(join(root, "elsewhere"), join(place, "12-linked"));
  await make().run("forked", {});
  expect(written()).toBe("first\nlinked\nlast\n");
  expect(reports).toEqual([]);
});

test("hooks receive the kind of restore, and have the environment of the sandbox", async () => {
  hook("hook", `echo "$ROOMD_RESTORED $TOKEN $HOME $PWD" >${root}/said; echo printed`);
  for (const how of ["resumed", "rolled_back", "forked"] as const) {
    await make().run(how, { TOKEN: "the sandbox's", ROOMD_RESTORED: "no" });
    expect(written()).toBe(`${how} the sandbox's /root /\n`);
  }
  expect(readFileSync(join(root, "log", "output"), "utf8")).toBe("printed\n".repeat(3));
});

test("a failed hook is reported, and the others run", async () => {
  const fails = hook("1", `${says("one")}; exit 3`);
  const cannot = join(place, "2");
  writeFileSync(cannot, "#!/no/such/shell\n", { mode: 0o755 });
  hook("3", says("three"));
  await make().run("resumed", {});
  expect(written()).toBe("one\nthree\n");
  expect(reports).toEqual([
    expect.stringMatching(new RegExp(`^${fails} .* 3$`)),
    expect.stringMatching(new RegExp(`^${cannot}: `)),
  ]);
});

test("a hook still running at the time limit is ended with its children, and the rest do not run", async () => {
  hook("1", `sleep 0.2; ${says("one")}`);
  const hangs = hook("2", `sh -c 'echo $$ >${root}/pid; exec sleep 600'; ${says("two")}`);
  const late = hook("3", says("three"));
  const startedAt = performance.now();
  await make(1_500).run("rolled_back", {});
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  expect(written()).toBe("one\n");
  expect(reports).toEqual([expect.stringContaining(`${hangs} `), expect.stringContaining(`${late} `)]);
  const pid = readFileSync(join(root, "pid"), "utf8").trim();
  const isGone = () => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  await until("the child process has exited", isGone);
});

test("a background process of a hook is not awaited, and keeps running", async () => {
  hook("1", `sleep 60 & echo $! >${root}/pid`);
  await make().run("resumed", {});
  process.kill(Number(readFileSync(join(root, "pid"), "utf8")));
});
