/** Owns what the home page says of the host: whether it is well, and what to do about each check that is not. */
import type { health } from "../../../shared/api/service.ts";
import { getAny } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { type Look, Shown, State } from "../parts/parts.tsx";
import { spanText } from "../parts/text.tsx";

const LOOKS = { ok: "ok", degraded: "wait", unavailable: "bad" } as const satisfies Record<string, Look>;
const CHECK_LOOKS = { ok: "ok", warn: "wait", fail: "bad" } as const satisfies Record<string, Look>;
const HOW = { kvm: "hardware virtualization", tcg: "emulation, which is slow" } as const;

export function HostHealth() {
  const found = useLoaded("health", (signal) => getAny<typeof health>("/health", signal));
  return (
    <Shown of={found} rows={1}>
      {({ status, version, acceleration, uptime_seconds, checks }) => (
        <>
          <p class="host">
            Host <State look={LOOKS[status]}>{status}</State>
            <span class="muted">
              roomd {version}, {HOW[acceleration]}, up {spanText(uptime_seconds * 1000)}
            </span>
          </p>
          <ul class="checks">
            {checks
              .filter((check) => check.status !== "ok")
              .map((check) => (
                <li key={check.id}>
                  <State look={CHECK_LOOKS[check.status]}>{check.id}</State> {check.message}
                  {check.remedy ? <span class="muted"> {check.remedy}</span> : null}
                </li>
              ))}
          </ul>
        </>
      )}
    </Shown>
  );
}
