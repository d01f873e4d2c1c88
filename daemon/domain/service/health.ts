/** The operation that returns whether the service is ready. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import { health } from "../../../shared/api/service.ts";
import { GUEST_CIDS } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { monotonicMs, now } from "../../core/clock.ts";
import { cachedByCost } from "../../core/concurrency/cost-cache.ts";
import { isVirtualMachine } from "../../host/probe.ts";
import { runChecks } from "./checks.ts";
import type { ServiceDeps } from "./deps.ts";

export function makeHealth(deps: ServiceDeps): Bound {
  const startedAt = monotonicMs();
  const virtual = isVirtualMachine();
  // Open to everyone, without a key too, and each call checks every sandbox.
  const checksNow = cachedByCost(() =>
    runChecks(deps.findings(), deps.templates, deps.paths, deps.sandboxes(), {
      passkeys: deps.passkeys(),
      backups: deps.backups(),
      anchors: deps.anchors(),
      clock: deps.clock(),
      membership: deps.membership(),
      directory: deps.directory(),
      threads: deps.threads(),
    }),
  );
  const capacityNow = () => {
    const { memory_mib_free, guest_cids_used } = deps.capacity();
    return { memory_mib_free, guest_cids_free: GUEST_CIDS - guest_cids_used };
  };
  return bind(health, {
    run: (call) => {
      const checks = checksNow();
      const { acceleration } = deps.findings().acceleration;
      const failed = checks.some((check) => check.status === "fail");
      const warned = checks.some((check) => check.status === "warn");
      const body: OutputOf<typeof health> = {
        status: failed ? "unavailable" : warned ? "degraded" : "ok",
        topology: acceleration === "tcg" ? "emulated" : virtual ? "nested" : "bare_metal",
        ready: !failed,
        version: VERSION,
        api_versions: ["v1"],
        acceleration,
        uptime_seconds: Math.floor((monotonicMs() - startedAt) / 1000),
        time: now(),
        checks: call.caller ? checks : checks.map(({ id, status }) => ({ id, status })),
        ...(call.caller ? { capacity: capacityNow() } : {}),
      };
      return { outcome: failed ? "unavailable" : "ready", body };
    },
  });
}
