"""Finds shortest paths."""

import heapq


def compute(graph):
    """Return the distance of each node from node 0. `graph` has the neighbours of each node, with lengths."""
    distances = {0: 0}
    queue = [(0, 0)]
    while queue:
        distance, node = heapq.heappop(queue)
        for neighbour, length in graph[node]:
            total = distance + length
            if neighbour not in distances or total < distances[neighbour]:
                distances[neighbour] = total
                heapq.heappush(queue, (total, neighbour))
    return distances
