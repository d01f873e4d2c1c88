/** Owns the form of a tool's answer: one object, as structured content and as the same JSON in text. */
import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Problem } from "../../../shared/api/errors.ts";
import { MAX_TOOL_WAIT_MS } from "../../../shared/api/tools.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Arguments, Refused, Reply, ToolCall } from "./call.ts";

/** The call that continues where this one stopped. */
export interface NextCall {
  tool: string;
  arguments: Arguments;
}

interface Failure {
  ok: false;
  problem: Problem;
  retry_after_seconds: number | null;
  next?: NextCall;
}

export type Answer = { ok: true; result: Arguments /** A PNG, in base64. */; picture?: string } | Failure;

/** What an operation answered, as it is. */
export function answerOf(reply: Exclude<Reply, { kind: "late" }>): Answer {
  return reply.kind === "done" ? { ok: true, result: reply.body } : failed(reply);
}

export function failed({ problem, retry_after_seconds }: Refused, next?: NextCall): Failure {
  return { ok: false, problem, retry_after_seconds, ...(next ? { next } : {}) };
}

/** For what has no end of its own within the time of a tool, and cannot be told in parts. */
export function stillUnderWay(call: ToolCall, next?: NextCall): Failure {
  const error = new ServiceError("not_ready", {
    detail: `${call.tool.name} is still running after ${MAX_TOOL_WAIT_MS / 1000} s.`,
    hint: "Make the same call again to keep waiting or to get the result.",
  });
  return failed(call.refuse(error), next ?? { tool: call.tool.name, arguments: call.given });
}

export function structured(answer: Answer): Arguments {
  if (answer.ok) return { ok: true, result: answer.result };
  const { status, code, detail, hint, retryable, request_id, details, errors } = answer.problem;
  const wait =
    answer.retry_after_seconds === null ? {} : { retry_after_seconds: Math.ceil(answer.retry_after_seconds) };
  const next = answer.next ? { next: answer.next } : {};
  return { ok: false, status, code, detail, hint, retryable, ...wait, request_id, details, errors, ...next };
}

export function toolResult(content: Arguments, picture?: string): CallToolResult {
  const shown = picture === undefined ? [] : [{ type: "image" as const, data: picture, mimeType: "image/png" }];
  return {
    content: [{ type: "text", text: JSON.stringify(content) }, ...shown],
    structuredContent: content,
    ...(content.ok ? {} : { isError: true }),
  };
}
