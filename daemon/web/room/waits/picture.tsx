/** The wait graph as a picture; hidden from screen readers, since the table below it has the same data. */
import { visible } from "../../components/text.tsx";
import { lineOf, NODE, type Picture } from "./graph.ts";

/** Maximum length of a name in a node. */
const MAX_NAME = 16;

export function Graph({ picture: { nodes, arrows, width, height } }: { picture: Picture }) {
  return (
    <div class="scroll graph">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <defs>
          {["plain", "ring"].map((look) => (
            <marker
              key={look}
              id={`head-${look}`}
              class={look}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              orient="auto"
            >
              <path d="M0 0 L8 4 L0 8 Z" />
            </marker>
          ))}
        </defs>
        {arrows.map((arrow) => (
          <path
            key={`${arrow.from.name} ${arrow.to.name}`}
            class={arrow.isInCycle ? "arrow ring" : "arrow plain"}
            d={lineOf(arrow)}
            marker-end={`url(#head-${arrow.isInCycle ? "ring" : "plain"})`}
          />
        ))}
        {nodes.map(({ name, x, y, isInCycle }) => (
          <g
            key={name}
            class={isInCycle ? "node ring" : "node"}
            transform={`translate(${x - NODE.width / 2} ${y - NODE.height / 2})`}
          >
            <rect width={NODE.width} height={NODE.height} rx="5" />
            <text x={NODE.width / 2} y={NODE.height / 2 + 4} text-anchor="middle">
              {visible(name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
