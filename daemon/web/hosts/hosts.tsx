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
        <Empty title="Hosts are seen by owners and admins.">
          <p>
            You are <b>{boot.user.role}</b> here. On which host a room is, its page says: go to{" "}
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
  const gone = items.filter(({ state }) => state === "gone");
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
          <p>Where one is not enough, another joins it by a token that this line makes:</p>
          <Line words={["cluster", "token"]} />
        </Empty>
      ) : null}
      {gone.length > 0 ? (
        <p class="muted">
          Taken out of the service:{" "}
          {gone.map(({ host }, n) => (
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
        {self ? <Foreign text={self.host} /> : "This host"} last read what hosts share {spanText(ageSeconds * 1000)}{" "}
        ago: its database does not answer. Whether the other hosts run is not known.
      </p>
      <p class="muted">
        Rooms go on, and all that is done in them. Until it answers, no room or sandbox is made or ended, and no key,
        person or organization is changed: <code>cluster_unavailable</code>. On that host the service's log says why.
      </p>
    </div>
  );
}
