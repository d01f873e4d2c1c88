/**
 * Traces with real guests: the worked example of docs/agents.md is one tree, from the outer program's step to each message, command,
 * arrival and call of the drive; commands without a waiting caller are in it too.
 */
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { type CollectedSpan, Collector, treeOf } from "../fixtures/collector.ts";
import { BINARY, type Json, type TestDaemon } from "../harness/daemon.ts";
import { blocksOf, pageAt } from "../harness/documents.ts";
import { testAlone, until } from "../harness/guests.ts";

const DEADLINE_MS = 300_000;
const [example = ""] = blocksOf(pageAt("docs/agents.md"), "sh test").map(({ text }) => text);
/** Calls of the drive by an agent, and by an outside client. */
const DRIVE = `
roomd exec team reviewer -- sh -ec 'echo well done | room drive put - /notes.txt && room drive get /notes.txt'
roomd drive get team:/notes.txt - >/dev/null
`;

test("an example exists", () => expect(example).toContain("room barrier merged"));

const collector = await new Collector().listen();
const env = { ROOMD_OTEL_ENDPOINT: collector.url };
testAlone("the worked example is one tree, and each part of it has its place", { env }, followed, DEADLINE_MS);

async function followed(daemon: TestDaemon): Promise<void> {
  const [traceId, outer] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  const traceparent = `00-${traceId}-${outer}-01`;
  const shell = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", `${example}${DRIVE}`], {
    env: {
      ...daemon.env,
      PATH: `${dirname(BINARY)}:${daemon.env.PATH}`,
      HOME: daemon.home,
      ROOMD_URL: daemon.url,
      ROOMD_API_KEY: daemon.apiKey,
      TRACEPARENT: traceparent,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, printed, errors] = await Promise.all([shell.exited, shell.stdout.text(), shell.stderr.text()]);
  expect(status, `${printed}\n${errors}`).toBe(0);

  const count = (spans: CollectedSpan[], name: string) => spans.filter((span) => span.name.startsWith(name)).length;
  const spans = await collector.trace(
    traceId,
    (all) => count(all, "command") >= 5 && count(all, "message") >= 4 && count(all, "file_get") >= 2,
  );
  console.log(treeOf(spans, outer).join("\n"));
  // Each hangs on another, up to the step outside.
  expect(treeOf(spans, outer)).toHaveLength(spans.length);
  const byId = new Map(spans.map((span) => [span.span_id, span]));
  const above = (span: CollectedSpan): string[] => {
    const parent = byId.get(span.parent_id ?? "");
    return parent ? [...above(parent), parent.name] : [];
  };
  const those = (name: string) => spans.filter((span) => span.name === name);

  // Every message that was sent was read, within its sender's command.
  const sends = [...those("agent_send"), ...those("message_reply")];
  const messages = those("message");
  expect(sends.map(({ attributes }) => attributes["roomd.message_id"]).sort()).toEqual(
    messages.map(({ attributes }) => attributes["roomd.message_id"]).sort(),
  );
  expect(
    messages.map(({ attributes }) => `${attributes["roomd.source"]} → ${attributes["roomd.agent_id"]}`).sort(),
  ).toEqual(["planner → worker", "reviewer → planner", "reviewer → worker", "worker → reviewer"]);
  for (const message of messages) expect(above(message)).toContain("command sh");
  const arrivals = those("barrier_arrive");
  expect(arrivals.map(({ attributes }) => attributes["roomd.agent_id"]).sort()).toEqual([
    "planner",
    "reviewer",
    "worker",
  ]);
  // Each is linked to those of the others that had come by its end.
  for (const { links } of arrivals) {
    expect(links).toHaveLength(2);
    for (const link of links) expect(byId.get(link)?.name).toBe("barrier_arrive");
  }
  for (const { attributes } of spans.filter(({ name }) => name.startsWith("command"))) {
    expect(attributes).toMatchObject({ "process.exit.code": 0, "roomd.exec_id": expect.stringMatching(/^exe_/) });
  }
  expect(those("sandbox start").map(({ attributes }) => typeof attributes["roomd.start_mode"])).toEqual(
    Array(3).fill("string"),
  );
  const drive = those("file_get").map((span) => above(span).includes("command sh"));
  expect(drive.sort()).toEqual([false, true]);

  // All audit records of it have the trace id.
  const { items } = await daemon.ok("GET", "/v1/rooms/team/audit?limit=1000");
  const events = new Set(items.flatMap(({ event, details }: Json) => (details.trace_id === traceId ? [event] : [])));
  for (const event of [
    "room.created",
    "sandbox.created",
    "exec.started",
    "exec.finished",
    "message.sent",
    "barrier.arrived",
  ])
    expect(events).toContain(event);

  // The span of a background command ends with the command; and a command's TRACEPARENT is its own span.
  const background = { command: "sleep 1; printenv TRACEPARENT >/mnt/drive/told", env: { OWN: "1" } };
  const { exec_id } = (
    await daemon.api("POST", "/v1/rooms/team/sandboxes/worker/executions", background, { traceparent })
  ).body;
  const ended = await until("the command's span has arrived", () =>
    collector.spans.find(({ name, attributes }) => name === "command sleep" && attributes["roomd.exec_id"] === exec_id),
  );
  expect(ended.ended_ms - ended.began_ms).toBeGreaterThanOrEqual(900);
  const response = await daemon.api("GET", "/v1/rooms/team/drive/files/told");
  expect(String(response.body).trim()).toBe(`00-${traceId}-${ended.span_id}-01`);
  // A command that ends with its sandbox has a span in the tree as well.
  const cut = { command: "tail -f /dev/null" };
  await daemon.api("POST", "/v1/rooms/team/sandboxes/reviewer/executions", cut, { traceparent });
  await daemon.ok("DELETE", "/v1/rooms/team/sandboxes/reviewer");
  await until("the command's span has arrived", () =>
    collector.spans.find(({ name, problem }) => name === "command tail" && problem),
  );

  const own = { command: "printenv TRACEPARENT", env: { TRACEPARENT: "mine" } };
  const { body } = await daemon.api("POST", "/v1/rooms/team/sandboxes/worker/exec", own, { traceparent });
  expect(body.stdout).toBe("mine\n");
  await collector.stop();
}
