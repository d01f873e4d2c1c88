/** Health of the host on the home page: its status, the failing checks, and where to find details. */
import type { health } from "../../../shared/api/service.ts";
import { Line, type Look, Shown, State } from "../components/parts.tsx";
import { spanText } from "../components/text.tsx";
import { getAny } from "../data/any-answer.ts";
import { useLoaded } from "../data/resource.ts";
import { useEvery } from "../data/use-interval.ts";

const LOOKS = { ok: "ok", degraded: "wait", unavailable: "bad" } as const satisfies Record<string, Look>;
const CHECK_LOOKS = { ok: "ok", warn: "wait", fail: "bad" } as const satisfies Record<string, Look>;
const HOW = { kvm: "hardware virtualization", tcg: "emulation, which is slow" } as const;

/** Polled: no event reports a host's health. */
const EVERY_MS = 30_000;

export function HostHealth() {
  const found = useLoaded("health", (signal) => getAny<typeof health>("/health", signal));
  useEvery(true, EVERY_MS, found.again);
  return (
    <Shown of={found} rows={1}>
      {({ status, version, acceleration, uptime_seconds, checks }) => {
        const amiss = checks.filter((check) => check.status !== "ok");
        return (
          <>
            <p class="host">
              Host <State look={LOOKS[status]}>{status}</State>
              {amiss.map((check) => (
                <State key={check.id} look={CHECK_LOOKS[check.status]}>
                  {check.id.replaceAll("_", " ")}
                </State>
              ))}
              <span class="muted">
                roomd {version}, {HOW[acceleration]}, up {spanText(uptime_seconds * 1000)}
              </span>
            </p>
            {amiss.length > 0 ? (
              <>
                <p class="muted">Run this for details and remedies:</p>
                <Line words={["health"]} />
              </>
            ) : null}
          </>
        );
      }}
    </Shown>
  );
}
