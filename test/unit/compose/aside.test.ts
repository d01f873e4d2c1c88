/** Each task of the aside thread: the same output as on the event loop, a bounded input, and short turns of the event loop during it. */
import { serialize } from "node:v8";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeAside } from "../../../daemon/compose/aside.ts";
import { TASKS } from "../../../daemon/compose/aside-tasks.ts";
import type { Log } from "../../../daemon/core/log.ts";
import { readImage } from "../../../daemon/domain/templates/tasks.ts";
import { shortenAside } from "../../../daemon/edge/mcp/tasks.ts";
import { readBodyAside } from "../../../daemon/edge/pipeline/tasks.ts";
import { type Aside, AsidePool } from "../../../daemon/host/aside/pool.ts";
import type { AnyTask, Task } from "../../../daemon/host/aside/task.ts";
import { MAX_DOCKERFILE_BYTES } from "../../../shared/api/template-builds.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

/** Sending and receiving take 15 ms at most, with the collection of garbage; the same tasks on the event loop 60 to 150. */
const MAX_MS = 40;
const BY = { owner: "org:org_1" } as const;

const dockerfileOf = (text: string) => () => ({ dockerfile: text.slice(0, MAX_DOCKERFILE_BYTES), args: {} });

interface Row {
  title: string;
  task: AnyTask;
  /** A transferred input is gone: each run needs a new one. */
  input(): unknown;
}

const bodyOf = (text: string) => () => ({ buffer: new Uint8Array(Buffer.from(text)).buffer });
const MIB = 1024 * 1024;
const messages = (count: number) =>
  JSON.stringify({
    items: Array.from({ length: count }, (_, seq) => ({ seq, payload: "x".repeat(Math.floor((16 * MIB) / count)) })),
    next_after: count,
    next_cursor: "c",
  });

const row = <Input>(task: Task<Input, unknown>, title: string, input: () => Input): Row => ({ title, task, input });
const ROWS: Row[] = [
  row(readBodyAside, "16 MiB in base64", bodyOf(JSON.stringify({ path: "/a", content_b64: "eHh4".repeat(5.6 * MIB) }))),
  row(readBodyAside, "16 MiB of escaped lines", bodyOf(JSON.stringify({ path: "/a", content: "a\n".repeat(7 * MIB) }))),
  row(
    readBodyAside,
    "16 MiB of wide characters",
    bodyOf(JSON.stringify({ path: "/a", content: "語".repeat(5 * MIB) })),
  ),
  row(readBodyAside, "names of objects", bodyOf(`{"__proto__":{"a":1},"constructor":null,"a":"${"x".repeat(MIB)}"}`)),
  row(
    readBodyAside,
    "many fields",
    bodyOf(JSON.stringify({ list: Array.from({ length: 9_000 }, (_, n) => ({ [`a-field-of-its-own-${n}`]: n })) })),
  ),
  row(readBodyAside, "many values", bodyOf(`{"a":[${"[],".repeat(MIB)}[]]}`)),
  row(readBodyAside, "no JSON", bodyOf(`{"a":"${"x".repeat(MIB)}`)),
  row(readBodyAside, "no UTF-8", () => ({ buffer: new Uint8Array(MIB).fill(255).buffer })),
  row(readImage, "many words", dockerfileOf(`FROM docker://a/b\nADD ${"$A ".repeat(85_000)}b`)),
  row(readImage, "many flags", dockerfileOf(`FROM docker://a/b\nCOPY ${"--chown=a ".repeat(25_000)}a b`)),
  row(readImage, "a refusal", dockerfileOf(`FROM docker://a/b\nRUN ${"<<A ".repeat(60_000)}`)),
  row(shortenAside, "many messages", () => ({ ...bodyOf(messages(2_000))(), most: 256 * 1024, isInbox: true })),
  row(shortenAside, "a long list", () => ({ ...bodyOf(messages(200_000))(), most: 18_000, isInbox: false })),
];

const here: Aside = new AsidePool(null);
let aside: AsidePool;
beforeAll(async () => {
  aside = makeAside({ warn: console.error } as unknown as Log);
  await aside.started();
});
afterAll(() => aside.close());

const outcomeOf = async (pool: Aside, { task, input }: Row): Promise<unknown> =>
  await pool.run(task as Task<unknown, unknown>, input(), BY).catch((error: unknown) => ({ error: String(error) }));
/** Of megabytes: compared value by value it would take seconds. */
const digestOf = (outcome: unknown) => new Bun.CryptoHasher("sha1").update(serialize(outcome)).digest("hex");

test("each task has a row, and a name of its own", () => {
  expect(new Set(ROWS.map(({ task }) => task.name))).toEqual(new Set(TASKS.map(({ name }) => name)));
  expect(new Set(TASKS.map(({ name }) => name)).size).toBe(TASKS.length);
});

test.each(ROWS)(
  "$task.name of $title gives the same output in the thread, without blocking the event loop",
  async (each) => {
    const task = each.task as Task<unknown, unknown>;
    expect(task.bytesOf(each.input())).toBeGreaterThan(task.smallBytes);
    const expected = digestOf(await outcomeOf(here, each));
    expect(digestOf(await outcomeOf(aside, each))).toEqual(expected);
    const input = each.input();
    let output: unknown;
    const longest = await longestTurn(async () => {
      output = await outcomeOf(aside, { ...each, input: () => input });
    });
    expect(digestOf(output)).toEqual(expected);
    console.log(`longest turn: ${longest.toFixed(1)} ms`);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  },
);
