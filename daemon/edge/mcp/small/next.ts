/** Translates calls of the usual tools to the small set. */
import type { NextCall } from "../answer.ts";
import type { Arguments } from "../call.ts";
import { DEFAULT_AGENT } from "./place.ts";

/** `own` is the default room, which calls omit. */
export function smallCall({ tool, arguments: args }: NextCall, own: string): NextCall {
  const { room_id, sandbox, agent_id, ...more } = args;
  const agent = sandbox ?? agent_id;
  const place: Arguments = {
    ...(room_id === undefined || room_id === own ? {} : { room: room_id }),
    ...(agent === undefined || agent === DEFAULT_AGENT ? {} : { agent }),
  };
  if (tool === "sandbox_exec" && more.exec_id !== undefined) {
    const { exec_id, ...rest } = more;
    return { tool: "follow", arguments: { run_id: exec_id, ...rest, ...place } };
  }
  if (tool === "fs_read") {
    const { length: _, ...rest } = more;
    return { tool: "read_file", arguments: { ...rest, ...place } };
  }
  return { tool, arguments: args };
}
