/** The page of hosts: status and capacity of each host of a cluster, the organization's rooms on it, and advice. */
import type { hostList } from "../../../shared/api/hosts.ts";
import { adviceFor, DIRECTORY_STALE_SECONDS, type ListedHost } from "../../../shared/host-advice.ts";
import { Empty, Head, Line, Shown, State } from "../components/parts.tsx";
import { countText, Foreign, spanText } from "../components/text.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { useEvery } from "../data/use-interval.ts";
import { boot } from "../shell/boot.ts";
import { Live } from "../shell/live-state.tsx";
import { useTitle } from "../shell/title.ts";
import { HostCard, LOOKS } from "./host.tsx";

/** Changes of a host raise no event; it reports its state every three seconds. */
const EVERY_MS = 10_000;
/** The most pressing first. */
const ORDER: readonly ListedHost["state"][] = ["unreachable", "degraded", "draining", "active"];

export default function Hosts() {
  useTitle("Hosts");
  const found = useLoaded("hosts", (signal) => get<typeof hostList>("/v1/hosts", {}, signal));
  useEvery(found.problem?.code !== "insufficient_scope", EVERY_MS, found.again);
  return (
    <>
      <Head title="Hosts">
        <Live />
      </Head>
      {found.problem?.code === "insufficient_scope" ? (
        <Empty title="Only owners and admins can see hosts.">
          <p>
            Your role is <b>{boot.user.role}</b>. Each room's page shows the host of the room: go to{" "}
            <a href="/rooms">Rooms</a>.
          </p>
        </Empty>
      ) : (
        <Shown of={found} rows={6}>
          {({ items, directory_age_seconds }) => <All items={items} ageSeconds={directory_age_seconds} />}
        </Shown>
      )}
    </>
  );
}

function All({ items, ageSeconds }: { items: readonly ListedHost[]; ageSeconds: number }) {
  const here = items.filter(({ state }) => state !== "gone");
  const removedHosts = items.filter(({ state }) => state === "gone");
  const isStale = ageSeconds >= DIRECTORY_STALE_SECONDS;
  const rank = (each: ListedHost) => ORDER.indexOf(each.state) - (adviceFor(each, items).length > 0 ? 0.5 : 0);
  const sorted = here.toSorted((one, other) => rank(one) - rank(other) || (one.host < other.host ? -1 : 1));
  return (
    <>
      {isStale ? <Stale ageSeconds={ageSeconds} self={here.find(({ is_self }) => is_self)} /> : null}
      <p class="lead">
        {countText(here.length)} {here.length === 1 ? "host" : "hosts"}:{" "}
        {ORDER.map((state) => [state, here.filter((each) => each.state === state).length] as const)
          .filter(([, count]) => count > 0)
          .map(([state, count]) => (
            <State key={state} look={isStale ? "quiet" : LOOKS[state]}>
              {countText(count)} {state}
            </State>
          ))}
      </p>
      {sorted.map((each) => (
        <HostCard key={each.host} host={each} all={items} isStale={isStale} />
      ))}
      {here.length === 1 ? (
        <Empty title="This service has one host.">
          <p>To add a host, print a token with which it joins:</p>
          <Line words={["cluster", "token"]} />
        </Empty>
      ) : null}
      {removedHosts.length > 0 ? (
        <p class="muted">
          Removed from the service:{" "}
          {removedHosts.map(({ host }, n) => (
            <span key={host}>
              {n > 0 ? ", " : ""}
              <Foreign text={host} />
            </span>
          ))}
          .
        </p>
      ) : null}
    </>
  );
}

/** Warning that the data of other hosts is stale: its age, and its effects. */
function Stale({ ageSeconds, self }: { ageSeconds: number; self: ListedHost | undefined }) {
  return (
    <div class="trouble" role="alert">
      <p>
        {self ? <Foreign text={self.host} /> : "This host"} last read the shared database {spanText(ageSeconds * 1000)}{" "}
        ago: the database does not answer. The state of the other hosts is unknown.
      </p>
      <p class="muted">
        Rooms and all work in them continue. Until the database answers, no room or sandbox can be created or destroyed,
        and no key, user or organization can be changed: <code>cluster_unavailable</code>. The service's log on that
        host has the reason.
      </p>
    </div>
  );
}
