"""A Kafka broker on this machine, for tests and measurements.

`broker` starts one from the jars that `./dev setup --integration` fetches, and stops it. It uses
nothing of Plait. Begin with `broker`.
"""
