/** The tool edit_file: its replacements, and the limit of its result. */
import { expect, test } from "vitest";
import { makeLog } from "../../../daemon/core/log.ts";
import type { ServiceError } from "../../../daemon/core/service-error.ts";
import type { ToolCall } from "../../../daemon/edge/mcp/call.ts";
import { editFile } from "../../../daemon/edge/mcp/small/file-tools.ts";
import { toProblem } from "../../../daemon/edge/pipeline/problem.ts";
import { MAX_WRITE_BYTES } from "../../../shared/api/drive.ts";

const PATH = "/mnt/drive/a";

/** Edits a drive that has one file. */
async function edit(content: string, change: { old: string; new: string; all?: boolean }) {
  const files = new Map([[PATH, content]]);
  const call = {
    keyId: "key_00000000",
    ask: ({ name }: { name: string }, input: { content: string }) => {
      if (name === "fs_write") files.set(PATH, input.content);
      const body = name === "fs_read" ? { content: files.get(PATH), size_bytes: content.length, eof: true } : {};
      return Promise.resolve({ kind: "done", body });
    },
    refuse: (error: ServiceError) => {
      const problem = toProblem(
        error,
        "req_1",
        makeLog("error", () => {}),
      );
      return { kind: "problem", status: problem.status, problem, retry_after_seconds: null };
    },
  } as unknown as ToolCall;
  return { answer: await editFile(call, { path: PATH, ...change }), left: files.get(PATH) };
}

test("one text, or each of many, is replaced literally", async () => {
  expect((await edit("a b", { old: "b", new: "$&c" })).left).toBe("a $&c");
  expect((await edit("a b a", { old: "a", new: "$1", all: true })).left).toBe("$1 b $1");
  expect((await edit("a b a", { old: "a", new: "c" })).left).toBe("a b a");
});

test("a result that could not be written is rejected before it is computed", async () => {
  const content = "a".repeat(500_000);
  // Of gigabytes, were it made.
  const { answer, left } = await edit(content, { old: "a", new: "b".repeat(5000), all: true });
  expect(answer).toMatchObject({
    ok: false,
    problem: { code: "file_too_large", details: { max_bytes: MAX_WRITE_BYTES } },
  });
  expect(left).toBe(content);
});
