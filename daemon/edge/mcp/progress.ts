/** Progress notifications for MCP clients that request them. */
import type { ServerContext } from "@modelcontextprotocol/server";
import { MAX_TOOL_WAIT_MS } from "../../../shared/api/mcp/tools.ts";
import { monotonicMs, startInterval, stopTimer } from "../../core/clock.ts";

const EVERY_MS = 5000;

/** Runs until stopped; does nothing for a client without a token. */
export function reportProgress(name: string, { mcpReq }: ServerContext): { stop(): void } {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return { stop: () => {} };
  const startedAt = monotonicMs();
  const report = () => {
    const progress = Math.round((monotonicMs() - startedAt) / 1000);
    const message = `${name} has been running for ${progress} s.`;
    const params = { progressToken, progress, total: MAX_TOOL_WAIT_MS / 1000, message };
    // Ignored if the client is gone.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  };
  const timer = startInterval(report, EVERY_MS);
  return { stop: () => stopTimer(timer) };
}
